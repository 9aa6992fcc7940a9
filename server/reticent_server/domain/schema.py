# SPDX-License-Identifier: Apache-2.0
"""The public schema of a data set: declared by the curator, never read off the data."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, floor, inf

from reticent_server.domain.column_kind import ColumnKind as ColumnKind  # noqa: PLC0414 - columns are declared with it
from reticent_server.domain.dates import date_text
from reticent_server.domain.derived import Derived, DerivedText
from reticent_server.domain.reading import UNSAID, Reading

MAX_NUMBER = 1e50  # fourth powers of bounds stay finite
LEAST_WIDTH = 1e-50  # so do those of inverse scales
MAX_INTEGER = 2**53  # larger integers are not exact in float64
MAX_COLUMNS = 500  # of a schema, and of a file that one is drafted for: a page with a form for each
MAX_TEXT = 256  # characters of a level, a marker or a name: they are shown in tables and messages


WEIGHT = "weight"
"""The one role that a column can have: a survey weight."""


_TRUE = ("true", "yes", "1", "y", "ja", "oui", "sí", "si", "sì", "sim", "wahr", "vrai")
_FALSE = ("false", "no", "0", "n", "nein", "non", "não", "nao", "nee", "nej", "falsch", "faux")
BOOLEAN_TEXTS: Mapping[str, float] = dict.fromkeys(_TRUE, 1.0) | dict.fromkeys(_FALSE, 0.0)
"""The cell texts of a boolean column, in lower case, and what they store."""

USUAL_MARKERS = (
    *("", "NA", "N/A", "n/a", "na", "NaN", "nan", "null", "NULL", ".", "-", "?", "#N/A"),
    *("unknown", "Unknown", "missing", "Missing", "k.A.", "k. A.", "unbekannt"),
)
"""What a draft proposes as texts of missing cells, for every column alike: which of them stand in a
file is private, and what a schema declares need not occur.
"""


@dataclass(frozen=True, slots=True)
class Recode:
    """How the cells of the file become a column's values, where they are not the values themselves.

    source: the column's name in the file; empty where it is the declared name. codes: texts of the
    file, each with the value that is stored for it, in place of the levels (or of a boolean
    column's words). other: the value of every text that is neither among them nor a marker of a
    missing cell; None: such a cell is an error. date: of a column of dates the format of its texts
    (strptime's); they are stored as days since 1970-01-01. derived: how the column is computed from
    others, in place of any cell.
    """

    source: str = ""
    codes: tuple[tuple[str, float], ...] = ()
    other: float | None = None
    date: str = ""
    derived: Derived | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """One declared column.

    lower, upper: declared bounds (numeric, integer; boolean has 0 and 1; categorical and ordered 0
    and len(levels) − 1, the bounds of its codes). levels: their levels in order, the stored code of
    a level being its position. missing: cell texts that mean "missing". recode: how the file's
    cells become values. role: WEIGHT of what a record counts for in the population, else empty.
    label: what people call it, one line, or empty. Both are said to analysts, and nothing else
    depends on them. excluded: ranges of whole values that no record in use has, by the condition of
    the question that the column is seen for (formula.excluded); never stored.
    """

    name: str
    kind: ColumnKind
    lower: float
    upper: float
    levels: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    recode: Recode = Recode()
    role: str = ""
    label: str = ""
    excluded: tuple[tuple[float, float], ...] = ()

    @property
    def source(self) -> str:
        """The column's name in the file; empty for a derived column, which has none there."""
        if self.recode.derived is not None:
            return ""
        return self.recode.source or self.name

    @property
    def reads_texts(self) -> bool:
        """Whether its cells are compared as texts, whatever their type in the file."""
        return self.kind.has_levels or bool(self.recode.codes)

    @property
    def is_date(self) -> bool:
        """Whether its values are days since 1970-01-01: an integer column to everything but the
        eye.
        """
        return bool(self.recode.date)

    def admits(self, first: float, last: float) -> bool:
        """Whether some whole value from `first` to `last` may be one of a record in use."""
        return not any(low <= first and last <= high for low, high in self.excluded)

    @property
    def size(self) -> int:
        """How many whole values records in use may have."""
        excluded = sum(int(last) - int(first) + 1 for first, last in self.excluded)
        return floor(self.upper) - ceil(self.lower) + 1 - excluded

    def values(self, most: int) -> tuple[float, ...]:
        """The whole values that records in use may have, in order: the first `most` of them."""
        start, found = ceil(self.lower), list[float]()
        for low, high in (*self.excluded, (floor(self.upper) + 1.0, inf)):
            found += map(float, range(start, min(int(low), start + most - len(found))))
            start = int(min(high, self.upper)) + 1
        return tuple(found)

    def shown(self, value: float) -> str:
        """A number of this column as people read it: of dates 2020-01-31, of levels the level."""
        if self.kind.has_levels:
            return self.levels[int(value)]
        return date_text(value) if self.is_date else f"{value:g}"

    @property
    def shown_kind(self) -> str:
        """The kind that the schema file declares."""
        return "date" if self.is_date else self.kind.value

    @property
    def may_be_missing(self) -> bool:
        """Whether the schema lists texts of missing cells, so that the column has a mask."""
        return bool(self.missing)

    @property
    def is_dummy(self) -> bool:
        """Boolean columns, and integer columns with bounds [0, 1], enter a design as dummies."""
        return self.kind is ColumnKind.BOOLEAN or (
            self.kind is ColumnKind.INTEGER and (self.lower, self.upper) == (0.0, 1.0)
        )


@dataclass(frozen=True, slots=True)
class Unit:
    """The protected unit: a row, or all rows that share a value of `column` (at most `max_rows`).

    gaps: whether a unit may have no row, where it has one at most: the table has a place for every
    person of its population, and who is in it is private.
    """

    column: str | None = None
    max_rows: int = 1
    gaps: bool = False

    @property
    def many_rows(self) -> bool:
        """Whether a unit may have another number of rows than its neighbour: the number of rows is
        private then.
        """
        return self.gaps or self.max_rows > 1

    @property
    def several_rows(self) -> bool:
        """Whether a unit may have more than one row, so that something can vary within it."""
        return self.max_rows > 1


ABSENT = ""
"""The name of no column: its mask of missing cells says which places of a table of persons hold no
row.
"""


@dataclass(frozen=True, slots=True)
class LinkedTable:
    """One of several tables about the same persons: its columns are named `<name>.<column>`."""

    name: str
    max_rows: int


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns, the unit, and what the curator offers of persons with many rows.

    features: (name, text) of declared features of a person (formula.features). tables: where
    several tables are linked by the unit's column, and asked about by features only. derived: texts
    of a schema file that are not yet columns (formula.derived); a stored schema has none. reading:
    how the file is read, as far as it is said; not shown to analysts.
    """

    columns: tuple[Column, ...]
    unit: Unit = Unit()
    description: str = ""
    features: tuple[tuple[str, str], ...] = ()
    tables: tuple[LinkedTable, ...] = ()
    derived: tuple[DerivedText, ...] = ()
    reading: Reading = UNSAID

    def column(self, name: str) -> Column | None:
        """The declared column of that name, or None."""
        return next((c for c in self.columns if c.name == name), None)

    def read_from(self, source: str) -> tuple[Column, ...]:
        """The declared columns that are read from a column of the file."""
        return tuple(c for c in self.columns if c.source == source)
