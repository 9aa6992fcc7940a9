# SPDX-License-Identifier: Apache-2.0
"""A question and what may be spent on it, as frozen values; kinds/ has the kinds of questions."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, ClassVar

from annotated_types import MaxLen, MinLen


@dataclass(frozen=True, slots=True)
class Privacy:
    """What the analyst offers; delta None means the policy's default."""

    epsilon: float
    delta: float | None = None


FeatureText = Annotated[str, MinLen(1), MaxLen(2_000)]
"""A feature of a person, such as `last(bmi, by=date)`; the length is that of a formula
(formula.limits).
"""

_PERSONS = {
    "description": (
        "Features of a person by name, such as `last(bmi, by=date)`, of a data set with several "
        "rows a person: the question is then about a table with one row a person and these "
        "columns, beside those that the curator has declared."
    )
}


@dataclass(frozen=True, slots=True)
class OfPersons:
    """Marks a field that has a meaning only where the protected unit is a person with several rows:
    a form about another table leaves it out. Limits nothing.
    """


@dataclass(frozen=True, slots=True)
class Query:
    """What every kind of question inherits: a frozen, slotted dataclass with a field `kind`, its
    kind's name.

    The interface refuses fields that a question does not declare.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}
    kind: Any = field(kw_only=True)
    persons: Annotated[Mapping[str, FeatureText], MaxLen(64), OfPersons()] | None = field(
        default=None, kw_only=True, metadata=_PERSONS
    )

    def other_target(self) -> "Query | None":
        """The same question with the other target: robust for the textbook's, the textbook's for
        robust. None: it has one only.
        """
        return None


def query_json(query: Query) -> dict[str, Any]:
    """The question as it is stored and replied: its kind and its fields that are not None."""
    fields = _given(asdict(query))
    return {"kind": query.kind} | fields


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    """Without what is None, at any depth."""
    given = {k: v for k, v in fields.items() if v is not None}
    return {k: _given(v) if isinstance(v, dict) else v for k, v in given.items()}
