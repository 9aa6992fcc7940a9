# SPDX-License-Identifier: Apache-2.0
"""Dates of a data set: days since 1970-01-01, which are declared and released as numbers."""

import re
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?")


def date_days(value: str | date | np.datetime64) -> float:
    """Days since 1970-01-01 of a date or a text such as 2020-01-31; NaN where it is missing (NaT,
    an empty text).

    Raises ValueError, also for a text that is a number: numpy would take 20000 for a year.
    """
    if isinstance(value, str) and value != "" and not _DATE.fullmatch(value):
        raise ValueError("a date as a text is written as 2020-01-31")
    if value == "" or value != value:  # noqa: PLR0124 - NaT of any library
        return float("nan")
    return float(np.array(value, dtype="datetime64[D]").astype(np.int64))


def date_text(days: float) -> str:
    """2020-01-31, of days since 1970-01-01; an ellipsis where they are not finite."""
    return str(np.datetime64(int(np.floor(days)), "D")) if np.isfinite(days) else "…"


def years(days: Any) -> NDArray[np.float64]:
    """The calendar year of each day; NaN where it is missing. Takes the real part, which is what a
    step has.
    """
    return _part(days, "Y", lambda passed: passed + 1970)


def months(days: Any) -> NDArray[np.float64]:
    """The month of each day, 1 to 12."""
    return _part(days, "M", lambda passed: passed % 12 + 1)


def _part(days: Any, unit: str, of: Any) -> NDArray[np.float64]:
    real = np.asarray(np.real(days), dtype=np.float64)
    known = np.where(np.isfinite(real), np.floor(real), 0).astype(np.int64).astype("datetime64[D]")
    values = of(known.astype(f"datetime64[{unit}]").astype(np.int64))
    return np.where(np.isfinite(real), values, np.nan)
