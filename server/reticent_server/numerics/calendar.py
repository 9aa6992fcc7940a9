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


def _days(days: FloatArray) -> NDArray[np.datetime64]:
    return np.floor(days).astype(np.int64).astype("datetime64[D]")
