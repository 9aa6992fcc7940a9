# SPDX-License-Identifier: Apache-2.0
"""What an estimator asks of the data: steps made of parts, each part one release primitive.

An estimator is a generator: it yields a step, the engine maps it over the blocks of the table, adds
integers, lets a mechanism release each part, and sends the tuple of released parts back in. `rho`
is always an integer in cost.RHO_UNITS; `unit_rows` is the largest number of rows of one protected
unit. A part whose contributions are those of persons has `unit_rows` 1 and their places in
`person_rows`: its map gives one contribution for each `person_rows` consecutive places of the
block, a function of these places alone (a `whole` GramSum gives a vector for each place, and a
mechanism adds up a person's). The engine holds parts to unit_rows · person_rows = m.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.grid import Grid
from reticent_server.domain.row_subset import RowSubset
from reticent_server.domain.scratch import FRESH, Scratch

if TYPE_CHECKING:
    from reticent_server.domain.columns import ColumnPart

FloatArray = NDArray[np.float64]

SELECTION_NANOSECONDS = 300  # planned for one sub-cell of one selection; measured: 100


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive records, by column: float64 arrays of length `rows` (a level is its code).

    missing: masks (True where missing; the value is then 0) of the columns that may be missing;
    and, of a table of persons with up to m rows, under the name ABSENT the places that hold no row.
    Its blocks are whole persons, of m places each. start: the stored position of the first record.
    scratch: memory for a map's arrays, which a pass uses again for its next block. unusable:
    records with a cell that cannot be read (a value within the bounds stands in its place); the
    engine makes their contributions none. records: the indices of the records that a step is about,
    None for all; the engine takes them out before it maps. ends: where each group's records end,
    counted from the first, of a block whose records the engine has brought into the order of the
    groups of a step by groups (mechanisms.disjoint_groups checks it).
    """

    start: int
    rows: int
    columns: Mapping[str, FloatArray]
    missing: Mapping[str, NDArray[np.bool_]]
    scratch: Scratch = FRESH
    unusable: NDArray[np.bool_] | None = None
    records: NDArray[np.int64] | None = None
    ends: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """Contributions v_i = weights_i · vectors_i that are never multiplied out: (size, rows),
    (rows,).

    Parts whose vectors are one array share the work on them.
    """

    vectors: FloatArray
    weights: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Contributions e_g ⊗ v_i that are never written out: vectors (k, rows), group (rows,) whole
    numbers.

    Entry j·groups + g of a record of group g is its v_j; every other entry, and all of a record of
    group −1, are `elsewhere`. A record whose v is not finite contributes nothing.
    """

    vectors: FloatArray
    group: NDArray[np.int64]
    groups: int
    elsewhere: float = 0.0

    def written_out(self) -> FloatArray:
        """(k · groups, rows)."""
        k, rows = self.vectors.shape
        whole = np.full((k, self.groups, rows), self.elsewhere)
        members = np.flatnonzero((self.group >= 0) & (self.group < self.groups))
        whole[:, self.group[members], members] = self.vectors[:, members]
        lost = ~np.isfinite(self.vectors).all(axis=0)
        return np.where(lost, np.nan, whole.reshape(k * self.groups, rows))

    def of(self, records: NDArray[np.bool_]) -> "Placed":
        """Those of some records (rows,)."""
        return replace(self, vectors=self.vectors[:, records], group=self.group[records])


Contribution = FloatArray | Scaled | Placed


def multiplied(contribution: Contribution) -> FloatArray:
    """The contributions as one array."""
    if isinstance(contribution, Scaled):
        return np.asarray(contribution.vectors * contribution.weights)
    return contribution.written_out() if isinstance(contribution, Placed) else contribution


FARTHEST_CLIP = 2.0**960
"""Clips are between its inverse and this (10^±289), so that an integer step, its inverse and what
they are multiplied by are normal floats: mechanisms.quantise needs their relative errors."""


def check_clip(clip: float) -> None:
    """Raises ValueError for a clip, a public number, outside of what can be made integers."""
    if not 1 / FARTHEST_CLIP <= clip <= FARTHEST_CLIP:
        raise ValueError(f"a clip is between {1 / FARTHEST_CLIP:.1g} and {FARTHEST_CLIP:.1g}")


@dataclass(frozen=True, slots=True)
class VectorSum:
    """Σ v_i of contributions with ‖v_i‖₂ ≤ clip; the map gives an array (size, rows), or with
    several `groups` Placed ones."""

    size: int
    clip: float
    rho: int
    unit_rows: int = 1
    person_rows: int = 1
    groups: int = 1

    def __post_init__(self) -> None:
        check_clip(self.clip)


@dataclass(frozen=True, slots=True)
class GramSum:
    """Σ v_i v_iᵀ of contributions with ‖v_i‖₂ ≤ clip; the map gives an array (size, rows).

    signed: Σ ±v_i v_iᵀ, with the signs of the weights of a `Scaled` contribution. groups: with
    several the map gives Placed contributions, and products of coordinates of different groups,
    which are 0 in every table, are released as 0. whole: a person's contribution is A_u = Σ_t v_t
    v_tᵀ over the person's `person_rows` places, with ‖A_u‖_F ≤ clip²; the map gives an array
    (size, places).
    """

    size: int
    clip: float
    rho: int
    unit_rows: int = 1
    signed: bool = False
    person_rows: int = 1
    groups: int = 1
    whole: bool = False

    def __post_init__(self) -> None:
        check_clip(self.clip)


@dataclass(frozen=True, slots=True)
class CountSum:
    """Numbers of records by code 0..bins−1; the map gives codes (rows,), −1 for no contribution."""

    bins: int
    rho: int
    unit_rows: int = 1
    person_rows: int = 1


@dataclass(frozen=True, slots=True)
class PowerSum:
    """Σ (p₁(t_i), …, p_k(t_i)) of public polynomials of one number |t_i| ≤ 1 of a record.

    polynomials: the coefficients of 1, t, t², … of each. The map gives numbers (rows,), NaN for no
    contribution; longer numbers are cut to ±1. They are priced together (mechanisms.power_sum).
    """

    polynomials: tuple[tuple[float, ...], ...]
    rho: int
    unit_rows: int = 1
    person_rows: int = 1

    @property
    def size(self) -> int:
        """k."""
        return len(self.polynomials)


@dataclass(frozen=True, slots=True)
class RunningCounts:
    """Numbers of records by line and position, with noise that is small in sums over a line's first
    positions.

    The map gives codes line · length + position (rows,), −1 for no contribution.
    """

    lines: int
    length: int
    rho: int
    unit_rows: int = 1
    person_rows: int = 1

    @property
    def bins(self) -> int:
        """How many codes there are."""
        return self.lines * self.length


@dataclass(frozen=True, slots=True)
class QuantileTree:
    """Quantiles by recursive exponential mechanisms on a public grid of increasing candidates.

    The map gives (rows,) codes: the index of the first candidate that is ≥ the record's value
    (candidates are the cells' upper ends), −1 for no contribution. repeats: of how many sub-cells a
    cell is made, over which records that tie are spread; a power of two. shared: every person
    weighs the same, in equal parts for its codes; the map then gives (person_rows, persons).
    weighted: a record counts as a share in [0, 1]; the map then gives (2, rows), codes and shares.
    may_be_empty: the first selection may say that there are hardly any records; all values are then
    NaN.
    """

    candidates: Grid
    probabilities: tuple[float, ...]
    rho: int
    unit_rows: int = 1
    repeats: int = 1
    person_rows: int = 1
    shared: bool = False
    weighted: bool = False
    may_be_empty: bool = False

    @property
    def fractional(self) -> bool:
        """Whether what a unit adds to a cell is a part of a whole."""
        return self.shared or self.weighted

    @property
    def sub_cells(self) -> int:
        """What a selection chooses from, all of them."""
        return len(self.candidates) * self.repeats


Part = VectorSum | GramSum | CountSum | PowerSum | RunningCounts | QuantileTree


@dataclass(frozen=True, slots=True)
class OneVector:
    """Parts of a step that are made of one vector x of a record, by their places in the step.

    vector: a VectorSum of αx. meat: a GramSum of the vector's own contribution. curvature: a
    GramSum of βx, whose `Scaled` has the same array of vectors. used: a CountSum of one bin; a
    record that it leaves out contributes nothing to the others. They cost less together than one by
    one (mechanisms.one_vector).
    """

    vector: int | None = None
    meat: int | None = None
    curvature: int | None = None
    used: int | None = None

    @property
    def places(self) -> tuple[int, ...]:
        """The places in the step of those parts that there are."""
        every = (self.vector, self.meat, self.curvature, self.used)
        return tuple(place for place in every if place is not None)


@dataclass(frozen=True, slots=True)
class ByGroup:
    """Parts of a step that are of disjoint groups of records: sizes[g] parts of each, one group
    after another.

    each: which of a group's own parts are of one vector. The step's map is a
    mechanisms.disjoint_groups.GroupsMap, and its parts are priced together there.
    """

    sizes: tuple[int, ...]
    each: tuple[OneVector | None, ...]


@dataclass(frozen=True, slots=True)
class SumStep:
    """One pass over the table: `map_fn` gives one contribution for each part, from one block.

    `map_fn` is a frozen dataclass with __call__ (it must pickle), a function of one record and of
    public values only, computed column by column, so that the integer sums do not depend on the
    block size. Rows that are not finite are made zero by the primitive.

    subset: the rows that are added, all without one. The plan gives the stride; the engine draws
    the secret key, independently of the records. Given the subset I, neighbours (one unit's records
    replaced, each in its place) have sums that differ by Σ_{i ∈ I ∩ K} (q_i − q′_i) over the
    replaced positions K, |K| ≤ m: at most the m terms that mechanisms.noisy_sum and
    mechanisms.quantile_tree are proved for. So a sum over I has the sensitivity of the sum over all
    rows, and parts cost what they cost on all rows. mechanisms.secret_rows proves the same where
    the replaced records also change the order of the rows.

    joint: parts that are priced together; the others' ρ are added (mechanisms.registry.rho).
    """

    label: str
    parts: tuple[Part, ...]
    map_fn: Callable[[Block], tuple[Contribution, ...]]
    subset: RowSubset | None = None
    joint: OneVector | ByGroup | None = None


@dataclass(frozen=True, slots=True)
class ColumnStep:
    """Statistics that no sum gives: `map_fn` gives one array (k, rows) for each part, from one
    block.

    The engine joins the blocks' arrays to (k, n), in stored order, and the parts' mechanisms
    compute their statistics of them and release these. `map_fn` is as in SumStep. All n records:
    nothing is left out but by the map itself. A part says for how many rows of one unit it is
    proved.
    """

    label: str
    parts: "tuple[ColumnPart, ...]"
    map_fn: Callable[[Block], tuple[FloatArray, ...]]


Step = SumStep | ColumnStep


@dataclass(frozen=True, slots=True)
class Released:
    """A released part, public from here on.

    values: VectorSum and PowerSum (size,), GramSum (size, size) symmetric, CountSum (bins,), in the
    units of the contributions; RunningCounts (lines · length,) weighted sums
    (mechanisms.running_counts); QuantileTree (len(probabilities),) candidates in increasing order,
    or NaN.
    sd: the noise's standard deviation for an entry of `values` (for GramSum: of a diagonal entry,
    the others having sd/√2); 0 for QuantileTree. passed: False where a test of safety did not pass
    (No Reply); `values` is then empty. rows: how many rows a step over a subset has added, whatever
    is in them; None: all.
    """

    values: FloatArray
    sd: float
    passed: bool = True
    rows: int | None = None
