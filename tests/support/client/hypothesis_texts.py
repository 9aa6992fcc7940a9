# SPDX-License-Identifier: Apache-2.0
"""Texts of linear hypotheses that client and server must both accept, and both refuse."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_STORED: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "fixtures/hypotheses.json").read_text("utf-8")
)
NAMES: list[str] = _STORED["names"]
"""The coefficients that the texts are about."""
REFUSED: list[list[str]] = _STORED["refused"]


@dataclass(frozen=True, slots=True)
class Accepted:
    """Texts with the rows of R and the values of r that they mean. one_by_one: the text of each
    row.
    """

    texts: list[str]
    rows: list[list[float]]
    values: list[float]
    one_by_one: list[str]

    def __str__(self) -> str:
        return "; ".join(" ".join(text.split()) for text in self.texts)


ACCEPTED = [
    Accepted(
        each["texts"],
        [[row.get(name, 0.0) for name in NAMES] for row in each["rows"]],
        each["values"],
        each.get("one_by_one", [text.strip() for text in each["texts"]]),
    )
    for each in _STORED["accepted"]
]
