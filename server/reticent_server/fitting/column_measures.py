# SPDX-License-Identifier: Apache-2.0
"""What a profile measures of a column: quantiles of a number, counts of levels, missing cells.

An integer column of few values is counted value by value: its counts say what quantiles cannot,
which values are rare, and its quantiles follow from them. A categorical column's missing cells are
one more bin of its counts, at no cost; another column that may be missing has a count of its own.

Persons with up to m > 1 rows count once each, in equal parts for their rows in use, with the noise
of one row a person (1/m of that of all rows): quantiles by mechanisms.quantile_tree (`shared`),
counts and missing cells as sums of vectors.

Proof for counts. A person with T ≥ 1 rows in use adds (the shares of these rows by bin) − a(1, …,
1), a = 1/max(B, 2), and without one −a(1, …, 1): a function of one person's m places. Shares are in
the hull of the B unit vectors, so what is added is no longer than at a corner, √(1 − 1/B) from B =
2 on and ½ for one bin; 0 is at a√B, no further. That is the clip C of a VectorSum, Δ = 2C, and N a
is public. Two persons in different bins attain Δ for B ≤ 2. The mechanism enforces the clip,
whatever the map gives.

What is *resolved*: quartiles, or shares of levels, with as little noise as a fit needs
(fitting.trust, SPREAD_NOISE). Of another number the median alone is released. The ρ of a profile is
divided by what resolving takes (`allocated`): a function of the schema, n, m and ρ alone, all
public.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, log, sqrt

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.design import Design
from reticent_server.domain.facts import ColumnProfile, DatasetFacts
from reticent_server.domain.schema import ABSENT, Column
from reticent_server.domain.steps import (
    Block,
    CountSum,
    FloatArray,
    Part,
    QuantileTree,
    Released,
    VectorSum,
)
from reticent_server.fitting.trust.thresholds import SPREAD_NOISE
from reticent_server.mechanisms.noisy_sum import noise_sd
from reticent_server.mechanisms.quantile_tree import scale
from reticent_server.numerics.grids import candidate_grid, cell_codes, repeats
from reticent_server.numerics.known_total import with_total

# values of an integer column that is counted; above, the noise of a sum of counts is larger than a
# quantile's
MOST_COUNTED = 100
_EMPTY = log(4096)  # candidates where no record is, for each one near a quantile
_OUTER = {0.05, 0.95}  # probabilities without which a tail is a guess
SURE = 2.0  # scales of a Gumbel selection: exceeded with probability e⁻²
_ENDS = (0.01, 0.025, 0.05)  # probabilities beyond which those asked for are left out
_FEWER = (  # fewer ones have a recursion of fewer levels, and less noise each
    (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95),
    (0.1, 0.25, 0.5, 0.75, 0.9),
    (0.25, 0.5, 0.75),
)
_QUARTILES = _FEWER[-1]
_GUMBEL = sqrt(
    2
)  # a selection's noise falls by e over a scale on both sides: standard deviation over scale
_UNIT_RHO = RHO_UNITS // 1000  # at which noise is computed to be scaled: it goes with 1/√ρ
_MARGIN = 1.02  # of ρ: what the whole numbers of a ladder's steps are off by at most
# relative parts of the profile's ρ: what a fit leans on most gets most; a share of missing cells is
# of one cell
_QUANTILE_WEIGHT, _VALUE_WEIGHT, _LEVEL_WEIGHT, _MISSING_WEIGHT = 16, 16, 8, 2


def is_counted(column: Column) -> bool:
    """Whether a column's values are counted one by one."""
    few = column.upper - column.lower < MOST_COUNTED
    return column.kind.is_whole and (few or not column.kind.is_number)


@dataclass(frozen=True, slots=True)
class Measure:
    """One part of a profile. what: "quantiles", "counts" or "missing"."""

    column: Column
    what: str

    @property
    def weight(self) -> int:
        """Its share of ρ, relative to others'."""
        if self.what == "counts":
            levels = not self.column.kind.is_number or self.column.is_dummy
            return _LEVEL_WEIGHT if levels else _VALUE_WEIGHT
        return _QUANTILE_WEIGHT if self.what == "quantiles" else _MISSING_WEIGHT

    @property
    def bins(self) -> int:
        """The number of values of a whole column, with one for a missing cell."""
        values = int(self.column.upper - self.column.lower) + 1
        return values + self.column.may_be_missing

    def part(self, rho: int, unit_rows: int, n: int, probabilities: Sequence[float]) -> Part:
        """Its release from n records, or n persons of up to `unit_rows`; quantiles at those of the
        probabilities that are reliable.
        """
        if self.what == "quantiles":
            tree = self._tree(rho, unit_rows, probabilities)
            return replace(tree, probabilities=reliable(tree, n, probabilities))
        return self._counts(rho, unit_rows)

    def _tree(self, rho: int, unit_rows: int, probabilities: Sequence[float]) -> QuantileTree:
        grid = candidate_grid(self.column)
        return QuantileTree(
            grid,
            tuple(probabilities),
            rho,
            repeats=repeats(grid),
            person_rows=unit_rows,
            shared=unit_rows > 1,
        )

    def _counts(self, rho: int, unit_rows: int) -> CountSum | VectorSum:
        bins = self.bins if self.what == "counts" else 1
        if unit_rows == 1:
            return CountSum(bins, rho)
        clip = sqrt(1 - 1 / bins) if bins > 1 else 0.5
        return VectorSum(bins, clip, rho, person_rows=unit_rows)

    def needs(self, unit_rows: int, n: int) -> int:
        """The ρ (RHO_UNITS) at which it is resolved from n records, or n persons of up to
        `unit_rows`.
        """
        if self.what == "quantiles":
            tree = self._tree(_UNIT_RHO, unit_rows, _QUARTILES)
            ratio = _noise(tree) / (SPREAD_NOISE.value * n)
        else:
            ratio = noise_sd(self._counts(_UNIT_RHO, unit_rows)) / self.most_noise(n)
        return ceil(_UNIT_RHO * _MARGIN * ratio**2)

    def most_noise(self, n: int) -> float:
        """The noise of a count of n records up to which it is resolved."""
        return SPREAD_NOISE.value * n if self.what == "missing" else _most_noise(self.column, n)

    def contributions(
        self, block: Block, used: NDArray[np.bool_] | None, unit_rows: int
    ) -> FloatArray:
        """(rows,) codes, or of persons of several rows (m, persons) codes of a tree and (bins,
        persons) shares. used: as of `codes`.
        """
        codes = self.codes(block, used)
        if unit_rows == 1:
            return codes
        if self.what == "quantiles":
            return codes.reshape(-1, unit_rows).T
        counted = ~block.missing[ABSENT] if ABSENT in block.missing else np.ones(len(codes), bool)
        return _person_shares(
            codes,
            counted if used is None else used & counted,
            self.bins if self.what == "counts" else 1,
            unit_rows,
        )

    def codes(self, block: Block, used: NDArray[np.bool_] | None) -> FloatArray:
        """(rows,) codes of this part; −1 where the record does not count. used: records in use;
        None: all.
        """
        missing, absent = block.missing.get(self.column.name), block.missing.get(ABSENT)
        if absent is not None:
            used = ~absent if used is None else used & ~absent
        if self.what == "missing":
            codes = np.where(block.missing[self.column.name], 0.0, -1.0)
            return codes if used is None else np.where(used, codes, -1.0)
        values = block.columns[self.column.name]
        if self.what == "quantiles":
            present = used if missing is None else (~missing if used is None else used & ~missing)
            return cell_codes(values, candidate_grid(self.column), present)
        codes = np.asarray(values - self.column.lower)
        codes = codes if missing is None else np.where(missing, float(self.bins - 1), codes)
        return codes if used is None else np.where(used, codes, -1.0)


def _most_noise(column: Column, n: float) -> float:
    """Of a count of one value, up to which a counted column is resolved; quantiles add up half of
    the counts.
    """
    added = (column.upper - column.lower + 1) / 2 if _has_quantiles(column) else 1.0
    return SPREAD_NOISE.value * n / sqrt(added)


def _has_quantiles(column: Column) -> bool:
    """Whether a counted column's quantiles are made of its counts."""
    return column.kind.is_number and not column.is_dummy


def _person_shares(
    codes: FloatArray, used: NDArray[np.bool_], bins: int, unit_rows: int
) -> FloatArray:
    """(bins, persons) shares of a person's rows in use by code, less `_centre`. codes, used:
    (persons · m,).
    """
    persons = len(codes) // unit_rows
    rows = np.maximum(np.count_nonzero(used.reshape(persons, unit_rows), axis=1), 1)
    owner = np.repeat(np.arange(persons), unit_rows)
    kept = used & (codes >= 0) & (codes < bins)
    at = codes[kept].astype(np.int64) * persons + owner[kept]
    shares = np.bincount(at, weights=1 / rows[owner[kept]], minlength=bins * persons)
    return np.asarray(shares.reshape(bins, persons) - _centre(bins))


def _centre(bins: int) -> float:
    """a: what a person's share of each bin is counted from."""
    return 1 / max(bins, 2)


def allocated(planned: Sequence[Measure], rho: int, unit_rows: int, n: int) -> tuple[int, ...]:
    """ρ of each measure (RHO_UNITS, at least 1 each), at most `rho` together from as many units on.

    What resolves a measure comes first, the cheapest first and in the order of the schema; what is
    left goes by weight to those that are not resolved, or where all are to all of them, for tails
    and finer counts.
    """
    needs = [measure.needs(unit_rows, n) for measure in planned]
    left, given = max(0, rho - len(planned)), [1] * len(planned)
    lacking = sorted(range(len(planned)), key=needs.__getitem__)
    while lacking and needs[lacking[0]] <= left:
        given[lacking[0]] = needs[lacking[0]]
        left -= needs[lacking.pop(0)]
    rest = lacking or range(len(planned))
    weights = sum(planned[k].weight for k in rest)
    for k in rest:
        given[k] += left * planned[k].weight // weights
    return tuple(given)


def is_resolved(column: Column, known: ColumnProfile | None) -> bool:
    """Whether a released profile tells a column's spread: quartiles, or counts above their
    noise.
    """
    if known is None:
        return False
    if known.counts is None:
        places = known.probabilities[: len(known.quantiles or ())]
        return bool(places) and places[0] <= _QUARTILES[0] and places[-1] >= _QUARTILES[-1]
    counted = sum(known.counts) + (known.missing or 0.0)
    return known.count_sd is None or known.count_sd <= _most_noise(column, counted)


def tells_tails(facts: DatasetFacts, design: Design) -> bool:
    """Whether the profile has the outer twentieths of every column of a design that has
    quantiles.
    """
    released = {} if facts.profile is None else facts.profile.columns
    known = [released.get(name) for name in design.columns]
    ends = [each.known_quantiles() for each in known if each is not None and each.quantiles]
    return None not in known and all(found.keys() >= _OUTER for found in ends)


def measures(column: Column) -> list[Measure]:
    """What is measured of a column."""
    if is_counted(column):
        return [Measure(column, "counts")]
    missing = [Measure(column, "missing")] if column.may_be_missing else []
    return [Measure(column, "quantiles"), *missing]


def reliable(part: QuantileTree, n: int, probabilities: Sequence[float]) -> tuple[float, ...]:
    """The first of some sets of probabilities whose ranks a tree of this ρ can find, with no more
    noise than a fit can do with: all further from both ends than the noise of a selection among all
    candidates is likely to reach; the median where no set is.
    """
    interior = [tuple(p for p in probabilities if min(p, 1 - p) >= end) for end in _ENDS]
    for chosen in (tuple(probabilities), *interior, *_FEWER):
        if not chosen:
            continue
        tree = replace(part, probabilities=chosen)
        far = min(min(p, 1 - p) for p in chosen) * n > scale(tree) * (_EMPTY + SURE)
        if far and _noise(tree) <= SPREAD_NOISE.value * n:
            return chosen
    return (0.5,)


def _noise(tree: QuantileTree) -> float:
    """Of the rank of a released quantile, a standard deviation in records."""
    return _GUMBEL * scale(tree)


def column_profile(
    column: Column,
    released: Sequence[tuple[Measure, Part, Released]],
    probabilities: Sequence[float],
    n: int,
    *,
    complete: bool = False,
) -> ColumnProfile:
    """The profile of a column from what was released of it; quantiles from counts at
    `probabilities`.

    n: the public number of records, or of persons where they have several rows. complete: whether
    counts add up to it.
    """
    quantiles, counts, missing, sd = None, None, None, None
    for measure, part, value in released:
        if isinstance(part, QuantileTree):
            quantiles = tuple(float(v) for v in value.values)
            probabilities = part.probabilities
            continue
        values = value.values
        if isinstance(part, VectorSum):
            values = values + n * _centre(part.size)
        if measure.what == "missing":
            missing = max(0.0, float(values[0]))
        else:
            counted = replace(value, values=values)
            counted = with_total(counted, float(n)) if complete else counted
            sd = counted.sd
            counts = tuple(max(0.0, float(v)) for v in counted.values)
            if column.may_be_missing:
                counts, missing = counts[:-1], counts[-1]
    if counts is not None and _has_quantiles(column):
        quantiles = counted_quantiles(counts, column.lower, probabilities)
    return ColumnProfile(
        quantiles=quantiles,
        counts=counts,
        missing=missing,
        probabilities=tuple(probabilities),
        first=column.lower,
        count_sd=sd,
    )


def counted_quantiles(
    counts: Sequence[float], first: float, probabilities: Sequence[float]
) -> tuple[float, ...]:
    """Quantiles of whole numbers from `first` on, from their counts."""
    edges = np.cumsum(np.asarray(counts))
    if edges[-1] <= 0:
        edges = np.cumsum(np.ones(len(edges)))
    at = np.searchsorted(edges, np.asarray(probabilities) * edges[-1], side="left")
    return tuple(float(first + k) for k in np.minimum(at, len(edges) - 1))
