"""What replies of several kinds hold: the schema of releases is made from these classes.

A field whose default is None is left out of a reply where it is None.
"""

from dataclasses import dataclass
from typing import Any

Interval = tuple[float, float]
OpenInterval = tuple[float | None, float | None]
"""(lower, upper); (None, None) where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number with its standard error and interval, in the units of the data.

    privacy_standard_error: the part of the standard error that is the privacy noise.
    """

    value: float
    standard_error: float
    confidence_level: float
    confidence_interval: Interval
    n: int
    privacy_standard_error: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A number without a standard error, in the units of the data.

    bin: the bin of the test of safety that the value is in. quartiles: that a range is the difference of.
    tuning: c of an M-estimate.
    """

    value: float
    n: int
    bin: Interval | None = None
    quartiles: Interval | None = None
    tuning: float | None = None
