# SPDX-License-Identifier: Apache-2.0
"""What a described column replies: figures with intervals, by group."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from reticent_server.fitting.results import Interval, Size

Count = Annotated[int, Ge(1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number with its 95 % interval, in the units of the column; shares are from 0 to 1.

    The interval counts sampling and privacy noise, the standard error too; quantiles have none.
    """

    value: float
    confidence_interval: Interval
    standard_error: Size | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """A standard deviation with its 95 % interval, in the units of the column. value: null where
    noise hides it."""

    value: Size | None
    confidence_interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedGroup:
    """A column in one group of records.

    counts (bins or levels,): unbiased and noisy, each with the noise count_standard_error. number:
    of records with a value. missing: the share of records without one, of a column that may be
    missing. Of numbers: mean, standard_deviation and quartiles; of levels: shares.
    """

    level: str
    number: float
    counts: list[float]
    count_standard_error: Size
    missing: Figure | None = None
    mean: Figure | None = None
    standard_deviation: Deviation | None = None
    quartiles: tuple[Figure, Figure, Figure] | None = None
    shares: list[Figure] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedColumn:
    """A column: edges (bins + 1,) of its histogram, the same twice for a bin of one number alone,
    or its levels or whole numbers; of whole numbers an edge is the first of its bin.

    clipped: the declared bounds, which no value exceeds, of a column whose mean is estimated from
    sums: mean and standard deviation are of the whole column. groups: one for each level of `by`
    and, first, all records together.
    """

    column: str
    groups: list[DescribedGroup]
    edges: list[float] | None = None
    levels: list[str] | None = None
    clipped: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSize:
    """A group's number of records in use, with the noise of its release."""

    level: str
    number: float
    standard_error: Size
    confidence_interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """Every column by group. sizes: of the groups, all records first. n: of the whole data set."""

    sizes: list[GroupSize]
    columns: list[DescribedColumn]
    confidence_level: float
    n: int
    by: str | None = None
