# SPDX-License-Identifier: Apache-2.0
"""What a column of a file may be, by all of its cells that are looked at: numbers in some style,
dates in some form, words, and the texts that stand for missing cells. For the curator who brings
the file.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent_server.domain.dates import ISO_DATES
from reticent_server.domain.reading import PLAIN, STYLES, NumberStyle
from reticent_server.domain.schema import BOOLEAN_TEXTS
from reticent_server.vault.cells import FloatArray, plain
from reticent_server.vault.date_cells import is_temporal, text_days
from reticent_server.vault.number_texts import are_numbers, plain_numbers

MANY = 64
"""Different texts of a column: more of them are names or remarks, and no levels that somebody
writes down.
"""

MARKERS = (
    *("", "na", "n/a", "n.a.", "nan", "<na>", "#n/a", "#na", "#value!", "#div/0!", "#num!", "null"),
    *("nil", ".", "..", "-", "--", "?", "unknown", "missing", "not available", "k.a.", "(null)"),
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

_SHORTEST_DATE = len("1.2.03")
"""Letters of the shortest text that one of the forms reads; each reads digits."""


@dataclass(slots=True)
class ColumnScan:
    """What a scan found in one column; private. texts: different ones that are no markers, at most
    MANY + 1. markers: texts of missing cells, as they stand in the file. signs: the decimal signs
    that stand in its numbers. is_numbers: whether every text is a number in some style, not all in
    the same one."""

    is_typed: bool = False
    is_date: bool = False
    loads: bool = True
    styles: tuple[NumberStyle, ...] = STYLES
    forms: tuple[str, ...] = FORMS
    is_boolean: bool = True
    is_whole: bool = True
    is_numbers: bool = True
    has_cells: bool = False
    texts: set[str] = field(default_factory=set, repr=False)
    markers: set[str] = field(default_factory=set, repr=False)
    signs: set[str] = field(default_factory=set)
    _codes: dict[float, set[str]] = field(default_factory=dict, repr=False)
    _range: tuple[float, float] = (np.inf, -np.inf)

    def add(self, cells: pa.Array) -> None:
        """Looks at the cells of a block."""
        cells = plain(cells)
        if cells.null_count:
            self.markers.add("")
        if pa.types.is_string(cells.type):
            self._add_texts(pc.unique(pc.drop_null(pc.utf8_trim_whitespace(cells))))
        else:
            self._add_typed(cells)

    def _add_texts(self, different: pa.Array) -> None:
        marks = pc.is_in(pc.utf8_lower(different), pa.array(MARKERS))
        self.markers.update(different.filter(marks).to_pylist())
        texts = different.filter(pc.invert(marks))
        if not len(texts):
            return
        self.has_cells = True
        self._remember(texts)
        words = pc.is_in(pc.utf8_lower(texts), pa.array(list(BOOLEAN_TEXTS)))
        self.is_boolean = self.is_boolean and _all(words)
        self.styles = tuple(s for s in self.styles if _all(are_numbers(texts, s)))
        if not self.styles and self.is_numbers:
            self.is_numbers = _all(_in_some_style(texts))
        self.forms = _forms_of(texts, self.forms)
        if self.styles:
            self._add_numbers(texts, self.styles[0])

    def _remember(self, texts: pa.Array) -> None:
        if len(self.texts) <= MANY:
            self.texts.update(texts[: MANY + 1].to_pylist())

    def _add_numbers(self, texts: pa.Array, style: NumberStyle) -> None:
        for sign in (".", ","):
            if pc.any(pc.match_substring(texts, sign)).as_py():
                self.signs.add(sign)
        values = pc.cast(plain_numbers(texts, style), pa.float64()).to_numpy(zero_copy_only=False)
        self._add_values(values, np.asarray(texts))

    def _add_typed(self, cells: pa.Array) -> None:
        self.is_typed, self.forms = True, ()
        self.has_cells |= cells.null_count < len(cells)
        if is_temporal(cells.type):
            self.is_date, self.styles, self.is_boolean = True, (), False
        elif pa.types.is_boolean(cells.type):
            self.styles = ()
        elif any(test(cells.type) for test in _NUMBERS):
            self.styles, self.is_boolean = (PLAIN,), False
            values = pc.cast(cells, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            if np.isnan(values).any():
                self.markers.add("")
            values = np.unique(values[~np.isnan(values)])
            self._add_values(values, np.array([f"{value:g}" for value in values[: MANY + 1]]))
            self.texts.update(f"{value:g}" for value in values[: MANY + 1])
            if pa.types.is_integer(cells.type):
                self.is_whole = True
        else:
            self.loads = False

    def _add_values(self, values: FloatArray, texts: np.ndarray) -> None:
        """texts: as the file writes the values; of the first ones."""
        coded = np.isin(values, _CODES)
        for k in np.flatnonzero(coded):
            text = str(texts[k]) if k < len(texts) else f"{values[k]:g}"
            self._codes.setdefault(float(values[k]), set()).add(text)
        rest = values[~coded & np.isfinite(values)]
        if rest.size:
            low, high = self._range
            self._range = (min(low, float(rest.min())), max(high, float(rest.max())))
            self.is_whole = self.is_whole and bool((rest == np.floor(rest)).all())

    def missing(self) -> tuple[str, ...]:
        """The texts of missing cells, and codes that are clearly outside, in a fixed order."""
        outside = (
            {t for code in self._outside() for t in self._codes[code]} if self.styles else set()
        )
        return tuple(sorted(self.markers | outside, key=lambda text: (text != "", text)))

    def _outside(self) -> Collection[float]:
        """Codes that lie clearly outside of all other values."""
        low, high = self._range
        for code in self._codes:
            if not self._is_outside(code, low, high) and low <= high:
                low, high = min(low, code), max(high, code)
        return [code for code in self._codes if self._is_outside(code, low, high)]

    @staticmethod
    def _is_outside(code: float, low: float, high: float) -> bool:
        if low > high:  # nothing but codes
            return False
        if code in _LONG_NEGATIVE and low >= 0:
            return True
        away = low - code if code < low else code - high
        return away > high - low


_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)


def _in_some_style(texts: pa.Array) -> pa.Array:
    """(texts,) which are numbers."""
    found = are_numbers(texts, STYLES[0])
    for style in STYLES[1:]:
        found = pc.or_(found, are_numbers(texts, style))
    return found


def _all(found: pa.Array) -> bool:
    return bool(pc.all(found, min_count=0).as_py())


def _forms_of(texts: pa.Array, forms: tuple[str, ...]) -> tuple[str, ...]:
    """Those that read every text. The first text is looked at alone: most columns are no dates, and
    it says so.
    """
    first = texts[0].as_py()
    if len(first) < _SHORTEST_DATE or re.search("[0-9]", first) is None:
        return ()
    return tuple(form for form in forms if _are_dates(texts[:1], form) and _are_dates(texts, form))


def _are_dates(texts: pa.Array, form: str) -> bool:
    return bool(np.isfinite(text_days(texts, form)).all())
