# SPDX-License-Identifier: Apache-2.0
"""A column of a design that is made of a factor's levels, from its name alone.

g[b], C(g)[b]                          1 at the level b
C(g, Sum)[S.a]                         1 at a, −1 at the level that has no column
C(g, Helmert)[H.b]                     j at the j-th level that has a column, −1 at those before it
C(g, Sum)[mean], C(g, Helmert)[H.intercept]    1
merge(g, low=["a", "b"])[low]          of levels that are joined; the others stay
C(month(d))[3]                         of a date's months, or years
lump(g, keep=["a"], other="rest")[a]   of levels of which all but the listed ones are joined
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from reticent._text_pieces import balanced, quoted_split

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
NAME = rf"`[^`]+`|{_PLAIN.pattern}"
BASELINE = "(baseline)"
"""Stands for a factor's level without a column where nobody has said its name."""
_QUOTED = r"\"[^\"]*\"|'[^']*'"
_LIST = rf"\[(?:[^\"'\[\]]|{_QUOTED})*\]"
_PART = rf"(?:year|month)\((?:{NAME})\)"
_GROUPED = rf"(?:merge|lump)\((?:[^\"'`()\[\]]|{_QUOTED}|`[^`]*`|{_LIST})*\)"
_HEAD = rf"(?:C\()?({_GROUPED}|{_PART}|{NAME})(?:, ?(Sum|Helmert))?\)?\["
_BEGINS = re.compile(_HEAD, re.DOTALL)
_LEVEL = re.compile(rf"{_HEAD}(.*)\]", re.DOTALL)
_COLUMN = re.compile(rf"(?:merge|lump)\(({NAME})")
_GROUP = re.compile(rf"(?<![A-Za-z0-9_.])({NAME})=({_LIST})")
_OTHER = re.compile(rf"other=({_QUOTED})\)$")
_MARKS = {"Sum": "S.", "Helmert": "H."}
_CONSTANTS = {("Sum", "mean"), ("Helmert", "H.intercept")}


@dataclass(frozen=True)
class Indicator:
    """A column of a factor. factor: as written, with its grouping. level: None for the column of
    ones.
    """

    factor: str
    level: str | None
    contrast: str | None = None

    @cached_property
    def column(self) -> str:
        """The data's column; of C(month(d)) the text month(d)."""
        match = _COLUMN.match(self.factor)
        return str(match[1] if match else self.factor).strip("`")

    def grouped(self, text: str) -> str:
        """The level that a cell belongs to; a missing cell's text is empty, and stays so."""
        if text in {"", BASELINE} or not self.factor.startswith(("merge(", "lump(")):
            return text
        groups = {
            level: name.strip("`")
            for name, levels in _GROUP.findall(self.factor)
            for level in (quoted[1:-1] for quoted in re.findall(_QUOTED, levels))
        }
        if self.factor.startswith("merge"):
            return str(groups.get(text, text))
        other = _OTHER.search(self.factor)
        return text if text in groups else str(other[1][1:-1] if other else "other")

    def number(self, text: str, levels: Sequence[str]) -> float:
        """The column's value at a level's text; levels: those that have columns, in order."""
        if text == "":
            return float("nan")
        if self.level is None:
            return 1.0
        if self.contrast == "Helmert":
            place = levels.index(text) if text in levels else -1
            own = levels.index(self.level)
            return float(own + 1) if place == own else -float(place < own)
        absent = -1.0 if self.contrast == "Sum" else 0.0
        return float(text == self.level) if text in levels else absent


def quoted(column: str) -> str:
    """A column as a term spells it: in backticks unless it is a plain name."""
    return column if _PLAIN.fullmatch(column) else f"`{column}`"


def term_pieces(name: str) -> list[str]:
    """The factors of a term's name. A level may be any text: with quotes, brackets or colons."""
    return list(_pieces(name) or quoted_split(name, ":"))


@cache
def _pieces(name: str) -> tuple[str, ...] | None:
    """The factors, the first as short as leaves a rest that can be read; None where there is
    none.
    """
    head = _BEGINS.match(name)
    for colon in re.finditer(":|$", name):
        first, rest = name[: colon.start()], name[colon.end() :]
        if _LEVEL.fullmatch(first) if head else balanced(first):
            if colon.start() == len(name):
                return (name,)
            if following := _pieces(rest):
                return (first, *following)
    return None


def indicator(text: str) -> Indicator | None:
    """The factor's column of that name, or None where it is none."""
    match = _LEVEL.fullmatch(text)
    if match is None:
        return None
    factor, contrast, level = match[1], match[2], match[3]
    if contrast is None:
        return Indicator(factor, level)
    if (contrast, level) in _CONSTANTS:
        return Indicator(factor, None, contrast)
    return Indicator(factor, level.removeprefix(_MARKS[contrast]), contrast)
