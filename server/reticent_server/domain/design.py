# SPDX-License-Identifier: Apache-2.0
"""A parsed model as data: terms, response and mask, each a function of one record.

The formula layer builds these values; numerics.evaluate computes them on a block.
"""

from dataclasses import dataclass
from typing import Literal

FunctionName = Literal[
    "log",
    "log1p",
    "log10",
    "sqrt",
    "exp",
    "square",
    "power",
    "legendre",
    "bspline",
    "step",
    "hinge",
    "shift",
    "divide",
    "days_since",
    "year",
    "month",
]
ComparisonName = Literal["==", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class ColumnValue:
    """The value of a numeric, integer or boolean column."""

    column: str


@dataclass(frozen=True, slots=True)
class Indicator:
    """1 where a column's stored value equals `code`, else 0."""

    column: str
    code: float


@dataclass(frozen=True, slots=True)
class Coded:
    """The public number among `values` that stands at a column's stored value among `codes`
    (increasing); 0 at any other.

    function: what is taken of the stored value first, such as a date's month.
    """

    column: str
    codes: tuple[float, ...]
    values: tuple[float, ...]
    function: FunctionName | None = None


@dataclass(frozen=True, slots=True)
class Filled:
    """The value of a numeric, integer or boolean column; `value`, a public one, where the cell is
    missing."""

    column: str
    value: float


@dataclass(frozen=True, slots=True)
class Missing:
    """1 where a column's cell is missing, else 0; with `present` the other way round."""

    column: str
    present: bool = False


@dataclass(frozen=True, slots=True)
class Apply:
    """A named function of an expression; `parameter` is the exponent of "power", and where "step"
    (1 from there on, else 0) and "hinge" (how far above it) begin, what "shift" and "days_since"
    take off, and "divide" divides by (above 0). "year" and "month" are those of a day, counted from
    1970-01-01.

    Of a basis (numerics.bases), `parameter` is the function's number, and `basis` what all of its
    functions share: "legendre" (lower, upper, largest order), "bspline" the knot vector.
    """

    function: FunctionName
    argument: "Expression"
    parameter: float = 1.0
    basis: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class EventTime:
    """1 where low ≤ time − since ≤ high, of columns of whole numbers, else 0; without `since`,
    low ≤ time ≤ high.

    0 where a cell of either is missing, or `since` has the value `never`: there the event does not
    happen.
    """

    time: str
    since: str | None
    low: float
    high: float
    never: float | None = None


@dataclass(frozen=True, slots=True)
class PersonMean:
    """The mean of an expression over the rows of the same person that are in use; a column of that
    `name` once a block is prepared (numerics.person_columns)."""

    name: str
    argument: "Expression"


Expression = ColumnValue | Indicator | Coded | Filled | Missing | Apply | EventTime | PersonMean


@dataclass(frozen=True, slots=True)
class Term:
    """A product of expressions: one column of the design.

    name: as reported, e.g. "log(x2)", "C(g)[b]", "x1:x2". lower, upper: bounds by interval
    arithmetic on the declared bounds. dummy: the product takes the values 0 and 1 only.
    """

    name: str
    factors: tuple[Expression, ...]
    lower: float
    upper: float
    dummy: bool = False


@dataclass(frozen=True, slots=True)
class Compare:
    """`column op value`; for categorical columns `value` is the level's code."""

    column: str
    op: ComparisonName
    value: float


@dataclass(frozen=True, slots=True)
class Not:
    """The records for which a condition does not hold."""

    argument: "Predicate"


@dataclass(frozen=True, slots=True)
class AllOf:
    """The records for which every one of several conditions holds."""

    arguments: tuple["Predicate", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """The records for which one or more of several conditions hold."""

    arguments: tuple["Predicate", ...]


Predicate = Compare | Not | AllOf | AnyOf


@dataclass(frozen=True, slots=True)
class ColumnWeight:
    """A record counts as the share column/largest, cut to [0, 1]. largest: the declared upper
    bound, above 0."""

    column: str
    largest: float


@dataclass(frozen=True, slots=True)
class TriangleWeight:
    """A record counts as max(0, 1 − |column − centre|/width): the triangular kernel, width above
    0."""

    column: str
    centre: float
    width: float
    largest: float = 1.0


RecordWeight = ColumnWeight | TriangleWeight


@dataclass(frozen=True, slots=True)
class MadeColumn:
    """A column that is made of a person's own rows: of the values of `term` in those in use, the
    person's mean, what is left of each value without it or without a part of it, or what is left
    of the intercept so."""

    name: str
    term: Term
    what: Literal["mean", "deviation", "quasi", "intercept"]


@dataclass(frozen=True, slots=True)
class PersonColumns:
    """What a design's columns are made of, where they are made of persons' rows
    (numerics.person_columns).

    rows: m, the places of a person. least: rows in use below which a person has none. written: the
    design of stored columns, whose mask says what is in use. made: the columns. checked: terms that
    a row in use has finite values of, beside those of `made`. correlation: of a person's rows, by
    which a part of the mean is taken off.
    """

    rows: int
    least: int
    written: "Design"
    made: tuple[MadeColumn, ...]
    checked: tuple[Term, ...] = ()
    correlation: float = 0.0


@dataclass(frozen=True, slots=True)
class Design:
    """response ~ [1 +] terms, on the records where `where` holds and no used column is missing.

    columns: every column that is read, in order. missing_columns: those of them that may be
    missing, and ABSENT where a place may hold no row. filled_columns: those of them whose missing
    cells leave no record out, as every term that reads them is Filled or has a factor Missing.
    weight: what share of a record counts; None: all of it. offset: a part of the predictor whose
    coefficient is 1; None: 0. persons: where terms and response are of columns that are made of
    persons' rows: they, and the one missing column, are to be found in a block only once it is
    prepared (numerics.person_columns). baselines: (column, level without a column) of the factors.
    """

    response: Term | None
    terms: tuple[Term, ...]
    intercept: bool
    where: Predicate | None
    columns: tuple[str, ...]
    missing_columns: tuple[str, ...] = ()
    filled_columns: tuple[str, ...] = ()
    weight: RecordWeight | None = None
    offset: Expression | None = None
    persons: PersonColumns | None = None
    baselines: tuple[tuple[str, str], ...] = ()

    @property
    def stored(self) -> "Design":
        """The design whose mask is about stored columns."""
        return self if self.persons is None else self.persons.written

    @property
    def deviations(self) -> bool:
        """Whether terms and response are deviations from a person's mean."""
        return self.persons is not None and self.persons.least > 1

    @property
    def masked(self) -> bool:
        """Whether some record may be out of use."""
        return self.where is not None or bool(self.missing_columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the design's columns, the intercept first where there is one."""
        head = ("Intercept",) if self.intercept else ()
        return head + tuple(t.name for t in self.terms)
