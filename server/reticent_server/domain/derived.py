# SPDX-License-Identifier: Apache-2.0
"""Columns that are computed from others when a table is loaded: declared texts, and what they were
read as."""

from dataclasses import dataclass
from typing import Literal

Action = Literal["column", "number", "function", "operator"]


@dataclass(frozen=True, slots=True)
class DerivedText:
    """What the schema file declares. lower, upper: the curator's, within those that the text gives;
    None: those."""

    name: str
    text: str
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a postfix program: puts a column's values or a number on the stack, or takes what
    an operator (two) or a function (one) needs and puts its result there. parameter: of a function,
    such as an exponent."""

    action: Action
    name: str = ""
    parameter: float = 0.0


@dataclass(frozen=True, slots=True)
class Derived:
    """A text such as "income / 1000", and its steps."""

    text: str
    steps: tuple[Step, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that it is computed from, each once."""
        return tuple(dict.fromkeys(s.name for s in self.steps if s.action == "column"))
