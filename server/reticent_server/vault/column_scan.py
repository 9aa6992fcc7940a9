# SPDX-License-Identifier: Apache-2.0
"""What a column of a file may be, by most of its cells that are looked at: numbers in some style,
dates in some form, words; and the texts that stand for missing cells. For the curator who brings
the file.

A draft is published once it is loaded, so no single cell decides what it says: a column is what
MOST of its cells are. What the others are is told to the curator alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reticent_server.domain.dates import ISO_DATES
from reticent_server.domain.reading import PLAIN, STYLES, NumberStyle
from reticent_server.domain.schema import BOOLEAN_TEXTS, USUAL_MARKERS
from reticent_server.vault.cells import BoolArray, FloatArray, plain
from reticent_server.vault.date_cells import is_temporal, text_days
from reticent_server.vault.number_texts import are_numbers, plain_numbers

IntArray = NDArray[np.int64]

MOST = 0.75
"""Share of a column's cells that make it one of numbers, dates or words: no single cell of four or
more decides it, and columns that mix codes with numbers are told by their curator.
"""

_PLAUSIBLE = 0.5
"""Share of the cells so far below which a style or a form is not looked for any further."""

_SAMPLE = 64
"""Different texts of the first block by which the forms of dates are chosen that are counted."""

_SHOWN = 3
"""Texts of another kind that are shown."""

MANY = 64
"""Different texts of a column: more of them are names or remarks, and no levels that somebody
writes down.
"""

MARKERS = (
    *(text.lower() for text in USUAL_MARKERS),
    *("<na>", "#na", "#value!", "#div/0!", "#num!", "nil", "..", "--", "not available", "(null)"),
    *("n.a.", "keine angabe"),
)
"""Texts that stand for missing cells, in lower case, as R, SAS, SQL, spreadsheets and people write
them.
"""

_LONG_NEGATIVE = (
    -66,
    -77,
    -88,
    -97,
    -98,
    -99,
    -777,
    -888,
    -998,
    -999,
    -7777,
    -8888,
    -9998,
    -9999,
    -99999,
)
"""Codes for missing values that no scale has by chance: clearly outside where all others are at
least 0.
"""

_OTHERS = (-9, 99, 999, 9999, 99999, 999999)
"""Codes that are values of many scales: clearly outside where they are further away than all others
from each other.
"""

_CODES = np.array([*_LONG_NEGATIVE, *_OTHERS], np.float64)

DAY_FIRST: Mapping[str, str] = {
    "%d/%m/%Y": "%m/%d/%Y",
    "%d-%m-%Y": "%m-%d-%Y",
    "%d/%m/%y": "%m/%d/%y",
    "%d/%m/%Y %H:%M": "%m/%d/%Y %H:%M",
    "%d/%m/%Y %H:%M:%S": "%m/%d/%Y %H:%M:%S",
}
"""Forms that may be read in two ways, by the one with the day first."""

FORMS = (
    *(ISO_DATES, "%Y%m%dT%H%M%S", "%Y/%m/%d", "%Y.%m.%d", "%Y/%m/%d %H:%M", "%Y/%m/%d %H:%M:%S"),
    *("%d.%m.%Y", "%d.%m.%y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S"),
    *DAY_FIRST,
    *DAY_FIRST.values(),
    *("%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d%b%Y", "%b %d, %Y", "%b %d %Y", "%d. %b %Y"),
)
"""Usual forms of dates; with a time of day after ISO 8601's in any case."""

_WORDS = tuple(word for word in BOOLEAN_TEXTS if not word.isdecimal())

_DIGITS = r"\A[+-]?[0-9]+\z"
"""Numbers that every style reads alike."""

_ENUMERATED = 20
"""Numbers of which all but one in _ENUMERATED go upwards, row by row, are an enumeration; fewer
cells than that are too few to say so."""


@dataclass(slots=True)
class Numbers:
    """A column's cells as one style reads them. cells: how many are numbers. codes: of _CODES, with
    their texts; low, high: of all others. flags: how many are 0 or 1."""

    cells: int = 0
    flags: int = 0
    is_whole: bool = True
    low: float = np.inf
    high: float = -np.inf
    codes: dict[float, set[str]] = field(default_factory=dict, repr=False)

    def add(self, values: FloatArray, texts: Sequence[str], counts: IntArray) -> None:
        """texts: as the file writes the values; counts: of cells."""
        self.cells += int(counts.sum())
        self.flags += int(counts[(values == 0) | (values == 1)].sum())
        coded = np.isin(values, _CODES)
        for k in np.flatnonzero(coded):
            self.codes.setdefault(float(values[k]), set()).add(texts[int(k)])
        rest = values[~coded & np.isfinite(values)]
        if rest.size:
            low, high = float(rest.min()), float(rest.max())
            self.low, self.high = min(self.low, low), max(self.high, high)
            self.is_whole = self.is_whole and bool((rest == np.floor(rest)).all())

    def outside(self) -> set[str]:
        """The texts of codes that lie clearly outside of all other values."""
        low, high = self.low, self.high
        for code in self.codes:
            if not _is_outside(code, low, high) and low <= high:
                low, high = min(low, code), max(high, code)
        return {t for c, texts in self.codes.items() if _is_outside(c, low, high) for t in texts}


def _is_outside(code: float, low: float, high: float) -> bool:
    if low > high:  # nothing but codes
        return False
    if code in _LONG_NEGATIVE and low >= 0:
        return True
    away = low - code if code < low else code - high
    return away > high - low


@dataclass(slots=True)
class ColumnScan:
    """What a scan found in one column; private. rows: that were looked at; cells: of them, those
    that are no markers; different: their texts, block by block. texts: at most MANY + 1 of them.
    markers: texts of missing cells, as they stand in the file. signs: the decimal signs of its
    numbers. is_numbers: whether every text is a number in some style, not all in the same one.
    foreign: the first texts that are nothing of what most are.
    """

    rows: int = 0
    cells: int = 0
    different: int = 0
    is_typed: bool = False
    is_date: bool = False
    loads: bool = True
    is_numbers: bool = True
    texts: set[str] = field(default_factory=set, repr=False)
    markers: set[str] = field(default_factory=set, repr=False)
    signs: set[str] = field(default_factory=set)
    foreign: list[str] = field(default_factory=list, repr=False)
    words: int = 0
    numbers: dict[NumberStyle, Numbers] = field(
        default_factory=lambda: {style: Numbers() for style in STYLES}, repr=False
    )
    dates: dict[str, int] | None = field(default=None, repr=False)
    _upwards: int = 0
    _last: float = -np.inf

    @property
    def has_cells(self) -> bool:
        """Whether any cell is no marker."""
        return self.cells > 0

    @property
    def styles(self) -> tuple[NumberStyle, ...]:
        """The styles in which MOST of its cells are numbers."""
        return tuple(s for s, found in self.numbers.items() if self._is_most(found.cells))

    @property
    def forms(self) -> tuple[str, ...]:
        """The forms in which MOST of its cells are dates, that of most cells first."""
        known = [form for form, count in (self.dates or {}).items() if self._is_most(count)]
        return tuple(sorted(known, key=lambda form: -self.cells_in(form)))

    def cells_in(self, written: NumberStyle | str) -> int:
        """How many cells are numbers of a style, or dates of a form."""
        if isinstance(written, str):
            return (self.dates or {}).get(written, 0)
        return self.numbers[written].cells if written in self.numbers else 0

    @property
    def is_boolean(self) -> bool:
        """Whether MOST of its cells are words for true and false; 0 and 1 are numbers."""
        return self._is_most(self.words)

    @property
    def is_enumeration(self) -> bool:
        """Whether its cells are whole numbers, all different, in rising order."""
        return self.cells >= _ENUMERATED and self._upwards * _ENUMERATED > self.cells * (
            _ENUMERATED - 1
        )

    def _is_most(self, count: int) -> bool:
        return self.cells > 0 and count >= MOST * self.cells

    def add(self, cells: pa.Array) -> None:
        """Looks at the cells of a block."""
        cells = plain(cells)
        self.rows += len(cells)
        if cells.null_count:
            self.markers.add("")
        if pa.types.is_string(cells.type):
            self._add_texts(pc.value_counts(pc.drop_null(pc.utf8_trim_whitespace(cells))))
        else:
            self._add_typed(cells)

    def _add_texts(self, found: pa.StructArray) -> None:
        different, times = found.field("values"), found.field("counts")
        marks = pc.is_in(pc.utf8_lower(different), pa.array(MARKERS))
        self.markers.update(different.filter(marks).to_pylist())
        texts, counts = different.filter(pc.invert(marks)), _ints(times.filter(pc.invert(marks)))
        if not len(texts):
            return
        self.cells += int(counts.sum())
        self.different += len(texts)
        self._remember(texts)
        words = _bools(pc.is_in(pc.utf8_lower(texts), pa.array(_WORDS)))
        self.words += int(counts[words].sum())
        known = words | self._add_numbers(texts, counts) | self._add_dates(texts, counts)
        if (self.numbers or self.dates or self.is_boolean) and len(self.foreign) < _SHOWN:
            self.foreign += texts.filter(pa.array(~known))[: _SHOWN - len(self.foreign)].to_pylist()

    def _remember(self, texts: pa.Array) -> None:
        if len(self.texts) <= MANY:
            self.texts.update(texts[: MANY + 1].to_pylist())

    def _add_numbers(self, texts: pa.Array, counts: IntArray) -> BoolArray:
        """Which texts are numbers in a style that is still plausible."""
        known = np.zeros(len(texts), np.bool_)
        digits = _bools(pc.match_substring_regex(texts, _DIGITS))
        whole = pc.cast(texts.filter(pa.array(digits)), pa.float64())
        self._add_order(_floats(whole), counts[digits])
        rest, others = texts.filter(pa.array(~digits)), counts[~digits]
        for style, numbers in list(self.numbers.items()):
            values = np.full(len(texts), np.nan)
            values[digits] = _floats(whole)
            values[~digits] = _floats(pc.cast(plain_numbers(rest, style), pa.float64()))
            fits = ~np.isnan(values)
            numbers.add(values[fits], texts.filter(pa.array(fits)).to_pylist(), counts[fits])
            if numbers.cells < _PLAUSIBLE * self.cells:
                del self.numbers[style]
            else:
                known |= fits
        for sign in (".", ",") if self.numbers and others.size else ():
            if pc.any(pc.match_substring(rest, sign)).as_py():
                self.signs.add(sign)
        if not self.styles and self.is_numbers:
            self.is_numbers = bool(_in_some_style(texts).all())
        return known

    def _add_order(self, values: FloatArray, counts: IntArray) -> None:
        """values: whole, in the order in which they come."""
        if values.size:
            steps = np.diff(values, prepend=self._last)
            self._upwards += int(((steps > 0) & (counts == 1)).sum())
            self._last = float(values[-1])

    def _add_dates(self, texts: pa.Array, counts: IntArray) -> BoolArray:
        """Which texts are dates in a form that is still plausible."""
        if self.dates is None:
            first = texts[:_SAMPLE]
            likely = [f for f in FORMS if _are_dates(first, f).sum() >= _PLAUSIBLE * len(first)]
            self.dates = dict.fromkeys(likely, 0)
        known = np.zeros(len(texts), np.bool_)
        for form in list(self.dates):
            fits = _are_dates(texts, form)
            self.dates[form] += int(counts[fits].sum())
            if self.dates[form] < _PLAUSIBLE * self.cells:
                del self.dates[form]
            else:
                known |= fits
        return known

    def _add_typed(self, cells: pa.Array) -> None:
        self.is_typed, self.dates = True, {}
        known = len(cells) - cells.null_count
        if is_temporal(cells.type):
            self.is_date, self.numbers = True, {}
        elif pa.types.is_boolean(cells.type):
            self.words, self.numbers = self.words + known, {}
        elif any(test(cells.type) for test in _NUMBERS):
            known = self._add_values(_floats(pc.cast(cells, pa.float64(), safe=False)))
        else:
            self.loads = False
        self.cells += known

    def _add_values(self, values: FloatArray) -> int:
        """How many are no missing ones."""
        self.numbers = {PLAIN: self.numbers[PLAIN]}
        if np.isnan(values).any():
            self.markers.add("")
        values = values[~np.isnan(values)]
        different, first, counts = np.unique(values, return_index=True, return_counts=True)
        self.different += len(different)
        order = np.argsort(first)
        if (different == np.floor(different)).all():
            self._add_order(different[order], counts[order])
        texts = [_number_text(float(value)) for value in different]
        self.numbers[PLAIN].add(different, texts, counts)
        self.texts.update(texts[: MANY + 1] if len(self.texts) <= MANY else ())
        return len(values)

    def missing(self, style: NumberStyle = PLAIN) -> tuple[str, ...]:
        """The texts of missing cells, and codes that are clearly outside as the style reads them,
        in a fixed order."""
        outside = self.numbers[style].outside() if style in self.styles else set()
        return tuple(sorted(self.markers | outside, key=lambda text: (text != "", text)))


_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)


def _in_some_style(texts: pa.Array) -> BoolArray:
    """(texts,) which are numbers."""
    found: BoolArray = np.logical_or.reduce([_bools(are_numbers(texts, s)) for s in STYLES])
    return found


def _bools(found: pa.Array) -> BoolArray:
    return np.asarray(pc.fill_null(found, False), np.bool_)


def _ints(counts: pa.Array) -> IntArray:
    return np.asarray(counts, np.int64)


def _floats(numbers: pa.Array) -> FloatArray:
    values: FloatArray = numbers.to_numpy(zero_copy_only=False)
    return values  # nulls have become NaN


def _number_text(value: float) -> str:
    """As cells that are compared as texts are written (vault.cells)."""
    return str(int(value)) if value.is_integer() and abs(value) < 2.0**53 else repr(value)


def _are_dates(texts: pa.Array, form: str) -> BoolArray:
    return np.isfinite(text_days(texts, form))
