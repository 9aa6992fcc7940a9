# SPDX-License-Identifier: Apache-2.0
"""A question and what may be spent on it, as frozen values; kinds/ has the kinds of questions."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Privacy:
    """What the analyst offers; delta None means the policy's default."""

    epsilon: float
    delta: float | None = None


class Query:
    """What every kind of question inherits: a frozen, slotted dataclass with a field `kind`, its kind's name.

    The interface refuses fields that a question does not declare.
    """

    __slots__ = ()
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}
    kind: Any


def query_json(query: Query) -> dict[str, Any]:
    """The question as it is stored and replied: its kind and its fields that are not None."""
    fields = _given(asdict(query))  # type: ignore[call-overload]
    return {"kind": query.kind} | fields


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    """Without what is None, at any depth."""
    given = {k: v for k, v in fields.items() if v is not None}
    return {k: _given(v) if isinstance(v, dict) else v for k, v in given.items()}
