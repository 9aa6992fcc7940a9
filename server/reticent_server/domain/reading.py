# SPDX-License-Identifier: Apache-2.0
"""How a private file is read: what a schema file says under `file`, and what was understood where
it says nothing.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace

SEPARATORS: Mapping[str, str] = {
    "comma": ",",
    "semicolon": ";",
    "tab": "\t",
    "pipe": "|",
    "blanks": " ",
}
"""Blanks stand in runs, of tabs too, and none at the ends of a line separates."""

QUOTES: Mapping[str, str] = {"double": '"', "single": "'"}
ENCODINGS: Mapping[str, str] = {
    "utf-8": "utf-8-sig",
    "utf-16": "utf-16",
    "windows-1252": "cp1252",
    "latin-1": "latin-1",
}
"""Python's codecs, by the names of the schema file. UTF-8 and UTF-16 may begin with a byte-order
mark.
"""

DECIMALS: Mapping[str, str] = {"point": r"\.", "comma": ","}
THOUSANDS: Mapping[str, str] = {
    "none": "",
    "comma": ",",
    "point": r"\.",
    "blank": r"[ \x{A0}\x{202F}]",
    "apostrophe": r"['\x{2019}]",
}
"""RE2's patterns of the signs in numbers. A blank is also one at which no line is broken."""

FORMATS = ("csv", "parquet", "arrow", "xlsx", "sas", "stata", "spss", "duckdb")
DATES = ("day-first", "month-first")

MAX_HEADER = 1000
"""The last line that may hold the names: titles and notes above a table take a page. As many
notes may stand below it.
"""

MAX_SHEET = 256
"""Characters of the name of a sheet or of a table, as of other names."""

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "format": FORMATS,
    "encoding": tuple(ENCODINGS),
    "separator": tuple(SEPARATORS),
    "quote": tuple(QUOTES),
    "decimal": tuple(DECIMALS),
    "thousands": tuple(THOUSANDS),
    "dates": DATES,
}


@dataclass(frozen=True, slots=True)
class Reading:
    """Each None: not said, and then understood from the file.

    header: the line (of a sheet: the row) that holds the columns' names, counted from 1; 0: there
    is none, and the columns are called column_1, column_2, …. skip_last: rows at the end, blank
    ones not counted, that are notes and no records. sheet: of an Excel file, or the table of a
    database. dates: what a draft takes 01/02/2020 for; a column's own format says it for a
    load.
    """

    format: str | None = None
    encoding: str | None = None
    separator: str | None = None
    quote: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    header: int | None = None
    skip_last: int | None = None
    sheet: str | None = None
    dates: str | None = None

    @property
    def said(self) -> dict[str, str | int]:
        """What is said, by its key in a schema file."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    def over(self, other: "Reading") -> "Reading":
        """This, and where it says nothing the other."""
        return replace(other, **self.said)  # type: ignore[arg-type]

    @property
    def numbers(self) -> "NumberStyle":
        """How numbers are written, plain where nothing is said."""
        return NumberStyle(self.decimal or "point", self.thousands or "none")


UNSAID = Reading()
"""Everything is understood from the file."""

KEYS = tuple(field.name for field in fields(Reading))
NUMBERS = ("header", "skip_last")
"""Keys whose values are whole numbers."""


def read_reading(said: Mapping[object, object]) -> Reading:
    """What a mapping of keys says. Raises ValueError: a sentence that names the key."""
    for key in said:
        if key not in KEYS:
            raise ValueError(
                f"the key {str(key)[:40]!r} is not known; the keys are {', '.join(KEYS)}"
            )
    for key, choices in _CHOICES.items():
        if key in said and said[key] not in choices:
            raise ValueError(f"{key} must be one of {', '.join(choices)}")
    header, notes, sheet = said.get("header", 1), said.get("skip_last", 0), said.get("sheet", "")
    if type(header) is not int or not 0 <= header <= MAX_HEADER:
        raise ValueError(
            f"header must be a line from 1 to {MAX_HEADER}, or 0 for a file without names"
        )
    if type(notes) is not int or not 0 <= notes <= MAX_HEADER:
        raise ValueError(f"skip_last must be a number of rows from 0 to {MAX_HEADER}")
    if not isinstance(sheet, str) or len(sheet) > MAX_SHEET:
        raise ValueError("sheet must be the quoted name of a sheet, or of a table of a database")
    if said.get("decimal", "point") == said.get("thousands"):
        raise ValueError("decimal and thousands must be different signs")
    return Reading(**{str(key): value for key, value in said.items()})  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class NumberStyle:
    """The signs in numbers, by their names. The thousands' sign stands between groups of three
    digits, or nowhere.
    """

    decimal: str = "point"
    thousands: str = "none"

    @property
    def is_plain(self) -> bool:
        """Whether numbers are written with a decimal point and no sign between thousands."""
        return self == PLAIN

    @property
    def pattern(self) -> str:
        """RE2's, of a whole number text."""
        point, group = DECIMALS[self.decimal], THOUSANDS[self.thousands]
        whole = rf"\d+|[1-9]\d{{0,2}}(?:{group}\d{{3}})+" if group else r"\d+"
        return rf"\A[+-]?(?:(?:{whole})(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?\z"

    @property
    def groups(self) -> str:
        """RE2's pattern of the thousands' sign; empty: there is none."""
        return THOUSANDS[self.thousands]


PLAIN = NumberStyle()
STYLES = (
    PLAIN,
    NumberStyle("comma"),
    NumberStyle("point", "comma"),
    NumberStyle("comma", "point"),
    NumberStyle("comma", "blank"),
    NumberStyle("point", "blank"),
    NumberStyle("point", "apostrophe"),
    NumberStyle("comma", "apostrophe"),
)
"""The styles that a file may be found to have; of several that fit, the first."""
