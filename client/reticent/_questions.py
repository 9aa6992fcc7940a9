# SPDX-License-Identifier: Apache-2.0
"""A kind's question: its fields in order, and how an analyst's arguments become the JSON that is
sent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any

from reticent._checks import Check

Query = dict[str, Any]
REQUIRED = Parameter.empty
"""The default of a field that must be given."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a question. keyword: it is given by its name only."""

    name: str
    check: Check
    default: Any = REQUIRED
    keyword: bool = False

    @property
    def parameter(self) -> Parameter:
        """The field as a parameter of its kind's method."""
        place = Parameter.KEYWORD_ONLY if self.keyword else Parameter.POSITIONAL_OR_KEYWORD
        return Parameter(self.name, place, default=self.default)


@dataclass(frozen=True, slots=True)
class Question:
    """What a kind asks for; positional fields come first."""

    kind: str
    fields: tuple[Field, ...] = ()

    def asked(self, *arguments: Any, **given: Any) -> Query:
        """The query of a method's arguments. Raises TypeError where they do not fit, InvalidQuery
        for values.
        """
        signature = Signature([field.parameter for field in self.fields])
        return self.query(signature.bind(*arguments, **given).arguments)

    def query(self, values: Mapping[str, Any]) -> Query:
        """The JSON of the fields' values. What need not be given is left to the server where it is
        None or the default.

        Raises InvalidQuery for a value of another type than the field's.
        """
        query: Query = {"kind": self.kind}
        for field in self.fields:
            value = values.get(field.name)
            if value is None and field.default is not REQUIRED:
                continue
            content = field.check.checked(field.name, value)
            if content != field.default:
                query[field.name] = content
        return query
