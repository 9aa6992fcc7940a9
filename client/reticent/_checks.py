"""Checks of what a caller gives, before anything is sent."""

from math import isfinite
from numbers import Real
from typing import Any

from reticent._errors import InvalidRequest


def finite(value: Any, error: InvalidRequest) -> float:
    """The value as a float; raises `error` for what is no finite number."""
    if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value):
        raise error
    return float(value)
