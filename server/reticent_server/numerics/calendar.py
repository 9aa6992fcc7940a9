# SPDX-License-Identifier: Apache-2.0
"""Parts of dates that are stored as days since 1970-01-01 (Gregorian, also before 1582: ISO
8601)."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def years(days: FloatArray) -> FloatArray:
    """The calendar year of each day; a day of any fraction is its whole day."""
    return np.asarray(_days(days).astype("datetime64[Y]").astype(np.int64) + 1970, dtype=np.float64)


def months(days: FloatArray) -> FloatArray:
    """The month of each day, 1 to 12."""
    passed = _days(days).astype("datetime64[M]").astype(np.int64)
    return np.asarray(passed % 12 + 1, dtype=np.float64)


def year_of(year: int, lower: float, upper: float) -> list[tuple[float, float]]:
    """The first and the last day of a year, of the days from `lower` to `upper`; [] for none."""
    return _between(12 * (year - 1970), 12, lower, upper)


def months_of(month: int, lower: float, upper: float) -> list[tuple[float, float]]:
    """The same of a month (1 to 12), in each year in which there is a day of it."""
    first, last = (int(year) for year in years(np.array([lower, upper])))
    starts = range(12 * (first - 1970) + month - 1, 12 * (last - 1970) + month, 12)
    return [ends for start in starts for ends in _between(start, 1, lower, upper)]


def _between(start: int, length: int, lower: float, upper: float) -> list[tuple[float, float]]:
    """The first and the last day of `length` months, the first of them `start` months after
    1970-01."""
    months = np.array([start, start + length], dtype="datetime64[M]")
    first, after = (float(day) for day in months.astype("datetime64[D]").astype(np.int64))
    ends = max(first, lower), min(after - 1, upper)
    return [ends] if ends[0] <= ends[1] else []


def _days(days: FloatArray) -> NDArray[np.datetime64]:
    return np.floor(days).astype(np.int64).astype("datetime64[D]")
