# SPDX-License-Identifier: Apache-2.0
"""Checks of what a caller gives, before anything is sent."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import Any

from reticent._errors import InvalidQuery, InvalidRequest


@dataclass(frozen=True, slots=True)
class Check:
    """Turns a field's value into JSON. wanted: what it must be, in words; plural: several of it.

    json raises TypeError or ValueError for what is something else.
    """

    wanted: str
    plural: str
    json: Callable[[Any], Any]

    def checked(self, field: str, value: Any) -> Any:
        """The JSON of a field's value. Raises InvalidQuery with a sentence that says what the field
        must be.
        """
        try:
            return self.json(value)
        except (TypeError, ValueError):
            raise InvalidQuery(f"{field} must be {self.wanted}.") from None


def several(item: Check) -> Check:
    """A list of what `item` checks, from anything that can be gone through but a text."""

    def json(values: Any) -> list[Any]:
        if isinstance(values, str | Mapping):
            raise TypeError
        return [item.json(value) for value in values]

    return Check(f"a list of {item.plural}", f"lists of {item.plural}", json)


def named(value: Check) -> Check:
    """What `value` checks, by name."""

    def json(content: Any) -> dict[str, Any]:
        if not isinstance(content, Mapping):
            raise TypeError
        return {_text(name): value.json(each) for name, each in content.items()}

    return Check(f"a mapping of names to {value.plural}", "mappings", json)


def word(*allowed: str) -> Check:
    """One of a few texts."""

    def json(value: Any) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise ValueError
        return value

    wanted = " or ".join(f'"{each}"' for each in allowed)
    return Check(wanted, wanted, json)


def either(*checks: Check) -> Check:
    """What the first of several checks accepts."""

    def json(value: Any) -> Any:
        for check in checks:
            try:
                return check.json(value)
            except (TypeError, ValueError):
                continue
        raise ValueError

    wanted = ", or ".join(check.wanted for check in checks)
    plural = ", or ".join(check.plural for check in checks)
    return Check(wanted, plural, json)


def finite(value: Any, error: InvalidRequest) -> float:
    """The value as a float; raises `error` for what is no finite number."""
    try:
        return _number(value)
    except TypeError:
        raise error from None


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value):
        raise TypeError
    return float(value)


def _whole(value: Any) -> int:
    if _number(value) != int(value):
        raise ValueError
    return int(value)


def _flag(value: Any) -> bool:
    # Of numpy, too, whose booleans are not Python's.
    if type(value).__name__ not in {"bool", "bool_"}:
        raise TypeError
    return bool(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _two_sided(value: Any) -> str:
    """What has a tilde: a time and an event in the places of formula and cuts are told of the
    formula.
    """
    text = _text(value)
    if "~" not in text:
        raise ValueError
    return text


def _query(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not isinstance(value.get("kind"), str):
        raise TypeError
    return dict(value)


NUMBER = Check("a finite number", "finite numbers", _number)
WHOLE = Check("a whole number", "whole numbers", _whole)
FLAG = Check("True or False", "True or False", _flag)
TEXT = Check("a text", "texts", _text)
HAZARDS = Check('a formula such as "Surv(time, event) ~ x1 + C(g)"', "formulas", _two_sided)
NAME = Check("a text", "columns' names", _text)
QUERY = Check("a query", "queries", _query)
