# SPDX-License-Identifier: Apache-2.0
"""Cells of a column of dates → days since 1970-01-01, NaN for what is no date of the calendar.

Texts are read by a declared format, strictly: 2021-02-30 is no date. Each cell by itself, whatever
the others hold.
"""

import re
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reticent_server.domain.dates import ISO_DATES

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_DIRECTIVES = {"Y": r"(?P<Y>\d{4})", "m": r"(?P<m>\d{1,2})", "d": r"(?P<d>\d{1,2})"}
_DIRECTIVES |= {"y": r"(?P<y>\d{2})", "b": rf"(?P<b>{_MONTH})\.?"}
_DIRECTIVES |= dict.fromkeys("HMS", r"\d{1,2}") | {"%": "%"}
_PIVOT = 69
"""The first year of two digits that is one of the twentieth century (POSIX, strptime)."""

_TIME_OF_DAY = r"(?:[T ].*)?"  # after a date in ISO 8601's order; it is left out


def is_temporal(kind: pa.DataType) -> bool:
    """Whether cells of this type are dates or times of the calendar."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def typed_days(cells: pa.Array) -> pa.Array:
    """float64 days of cells of a type of dates, or of moments (their day in UTC)."""
    if pa.types.is_date32(cells.type):
        return pc.cast(pc.cast(cells, pa.int32()), pa.float64())
    per_day = _PER_DAY[getattr(cells.type, "unit", "ms")]
    counts = pc.cast(cells, pa.int64())
    known = pc.is_valid(counts).to_numpy(zero_copy_only=False)
    days = pc.fill_null(counts, 0).to_numpy(zero_copy_only=False) // per_day
    return pa.array(days.astype(np.float64), mask=~known)


def text_days(cells: pa.Array, form: str) -> FloatArray:
    """Days of texts in a format; NaN for others."""
    parts = pc.extract_regex(cells, _pattern(form))
    known = pc.is_valid(parts).to_numpy(zero_copy_only=False)
    if not known.any():
        return np.full(len(cells), np.nan)
    year, month, day = _year(parts, form), _month(parts, form), _numbers(parts, "d")
    real = known & (year > 0) & (month > 0) & (month < 13) & (day > 0)
    first = np.where(real, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    start = first.astype("datetime64[D]").astype(np.int64)
    length = (first + 1).astype("datetime64[D]").astype(np.int64) - start
    return np.where(real & (day <= length), start + day - 1.0, np.nan)


def _year(parts: pa.Array, form: str) -> IntArray:
    if "%Y" in form:
        return _numbers(parts, "Y")
    short = _numbers(parts, "y")
    return np.where(short < _PIVOT, 2000, 1900) + short


def _month(parts: pa.Array, form: str) -> IntArray:
    if "%m" in form:
        return _numbers(parts, "m")
    begins = pc.utf8_lower(pc.utf8_slice_codeunits(pc.struct_field(parts, "b"), 0, 3))
    places = pc.fill_null(pc.index_in(begins, pa.array(_MONTHS)), -1)
    return np.asarray(pc.cast(places, pa.int64())) + 1


def _numbers(parts: pa.Array, name: str) -> IntArray:
    texts = pc.fill_null(pc.struct_field(parts, name), "0")
    return np.asarray(pc.cast(pc.if_else(pc.equal(texts, ""), "0", texts), pa.int64()))


@cache
def _pattern(form: str) -> str:
    """RE2's pattern of a format."""
    pieces = re.split(r"%(.)", form)
    body = "".join(
        _DIRECTIVES[piece] if k % 2 else re.escape(piece) for k, piece in enumerate(pieces)
    )
    return rf"\A{body}{_TIME_OF_DAY if form == ISO_DATES else ''}\z"
