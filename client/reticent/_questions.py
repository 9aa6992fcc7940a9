# SPDX-License-Identifier: Apache-2.0
"""A kind's question: its fields in order, and how an analyst's arguments become the JSON that is
sent.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any

from reticent._checks import Check
from reticent._errors import InvalidQuery

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
        for values and for a name that is no argument.
        """
        refuse_unknown(self.kind, given, [field.name for field in self.fields])
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


def refuse_unknown(method: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raises InvalidQuery for a name that is no argument of a method, with the nearest one and the
    kinds that have it.
    """
    from reticent._methods import QUESTIONS  # noqa: PLC0415 - which is made of questions

    known = list(known)
    unknown = next((name for name in given if name not in known), None)
    if unknown is None:
        return
    near = get_close_matches(unknown, known, n=1)
    kinds = [k for k, q in QUESTIONS.items() if any(f.name == unknown for f in q.fields)]
    said = f"{method} has no argument {unknown}"
    said += f"; did you mean {near[0]}?" if near else f"; it has {', '.join(known)}."
    raise InvalidQuery(f"{said} {unknown} is one of {', '.join(kinds)}." if kinds else said)


def in_words(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, which says in a sentence that a name is no argument of it."""
    parameters = signature(method).parameters
    if any(each.kind is Parameter.VAR_KEYWORD for each in parameters.values()):
        return method
    known = [name for name in parameters if name != "self"]

    @wraps(method)
    def checked(*arguments: Any, **given: Any) -> Any:
        refuse_unknown(method.__name__, given, known)
        return method(*arguments, **given)

    return checked
