# SPDX-License-Identifier: Apache-2.0
"""Planned group–time effects: a radius, then one Gram sum of all cohorts (staggered_did.cells).

Everything that is replied is post-processing of the two: effects against those never treated and
those not yet treated, all averages, and the test of what is before treatment.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, inf, isfinite, log, sqrt
from typing import Any, ClassVar

import numpy as np

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.grid import Grid
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision
from reticent_server.domain.steps import GramSum, QuantileTree, SumStep
from reticent_server.errors import InvalidPrivacy
from reticent_server.kinds.shared import answers
from reticent_server.kinds.staggered_did.cells import (
    LENGTHS,
    CohortCellMap,
    CohortPanel,
    LengthMap,
    cell_part,
    cells_of,
    expected_cells,
)
from reticent_server.kinds.staggered_did.effects import CohortCells, group_time_effects, pooled
from reticent_server.kinds.staggered_did.result import (
    Cohort,
    StaggeredDidResult,
    controlled_effects,
)
from reticent_server.mechanisms import noisy_sum, quantile_tree

SHARE = 0.08  # of ρ, for the radius; the noise of sums is then larger by a factor of 1.04
# of lengths, the higher the better a heavy tail is seen
_PROBABILITIES = (0.98, 0.95, 0.9, 0.75, 0.5)
# scales of a selection by which a rank is off once in e⁵ cases, with LENGTHS cells to choose from
_OFF = 5.0 + log(LENGTHS)
_RECORD_NANOSECONDS = 60  # planned for a row and period; measured: 25
_DRAW_MICROSECONDS = 20  # of one entry's noise; measured: 11

_TOO_SMALL = "epsilon is too small to select a radius; raise it."
_PERSONS = (
    "Average effects on the treated (Callaway & Sant'Anna 2021, without covariates) of persons "
    "with one row in each period, whose deviations from their own mean are cut to the radius "
    "together"
)
_ROWS = (
    "Average effects on the treated (Callaway & Sant'Anna 2021, without covariates) in repeated "
    "cross-sections, of responses cut to the centre ± the radius"
)
_LOST = (
    "Cohorts whose number is not above its noise are left out: {}. Ask for a larger epsilon, or "
    "for coarser dates of treatment."
)
_NONE = (
    "No effect can be estimated: no treated cohort with controls has a number above its noise. Ask "
    "for a larger epsilon, or for coarser dates of treatment."
)


@dataclass(frozen=True, slots=True)
class StaggeredDidPlan(Planned):
    """Planned group–time effects. longest: no vector z is longer. expected: numbers of the cohorts
    by public facts. sd: of the response (None: not known). n: as the reply says."""

    deadline_shares: ClassVar = (0.08, 0.04)

    panel: CohortPanel
    tree: QuantileTree
    part: GramSum
    longest: float
    expected: tuple[float, ...]
    sd: float | None
    level: float
    n: int

    @property
    def outline(self) -> Outline:
        L = 2 + self.panel.length
        draws = self.panel.groups * L * (L - 1) // 2 * _DRAW_MICROSECONDS / 1000
        rows = 2 * self.n * (self.panel.T + 4) * _RECORD_NANOSECONDS / 10**6
        return Outline(
            columns=self.panel.design.columns,
            rho=self.tree.rho + self.part.rho,
            mechanism="an exponential mechanism for the radius, discrete Gaussian sums by cohort",
            reference="Canonne, Kamath & Steinke (2020); Callaway & Sant'Anna (2021)",
            parts=(self.tree, self.part),
            passes=2,
            column_ms=ceil(draws + rows),
            of_persons=self.panel.rows is not None,
            gaussian_counts=(),
            selections=(self.tree,),
            answers=answers.COHORT_EFFECTS,
        )

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The noise of the simple average over its sampling error, with the cohorts' numbers of the
        profile, or equal ones, which does not depend on the responses' spread; and the noise in
        units, where a profile says how much they vary (else null).
        """
        expected = self.precision
        (noise,), (sampling,) = expected.privacy, expected.sampling
        told = isfinite(noise) and sampling is not None
        return {
            "terms": list(expected.names),
            "privacy_to_sampling": [noise / sampling if told and sampling else None],
            "privacy_standard_error": noise if told and expected.in_units else None,
        }

    @property
    def precision(self) -> ForecastPrecision:
        """Of the simple average over all treated; of its ratio alone where the responses' spread is
        not known.
        """
        s, radius = noisy_sum.noise_sd(self.part), self._radius()
        cells = expected_cells(self.panel, self.expected, s, radius)
        after = [
            e for e in group_time_effects(cells, never=False) if e.period >= cells.starts[e.cohort]
        ]
        known = self.sd is not None
        if not after:
            return ForecastPrecision(("simple",), (inf,), (radius,), in_units=known)
        D = pooled(cells, after).gradient
        noise, sampling = (
            sqrt(float(np.einsum("ck,ckl,cl->", D, V, D))) for V in (cells.privacy, cells.sampling)
        )
        return ForecastPrecision(("simple",), (noise,), (sampling,), in_units=known)

    def _radius(self) -> float:
        if self.sd is None:
            return self.panel.reach  # of responses with a standard deviation of 1
        return min(self.longest, self.sd * self.panel.reach)

    def run(self) -> Recipe:
        """1. The radius. 2. Numbers, sums and products by cohort."""
        lengths = lengths_to(self.longest)
        (place,) = yield SumStep("radius", (self.tree,), LengthMap(self.panel, lengths))
        stretch = self.panel.stretch(self.tree.probabilities[0])
        radius = min(self.longest, lengths[int(place.values[0])] * stretch)
        (released,) = yield SumStep("cells", (self.part,), CohortCellMap(self.panel, radius))
        return self._result(cells_of(self.panel, released, radius), radius)

    def _result(self, cells: CohortCells, radius: float) -> StaggeredDidResult:
        first, last = self.panel.periods
        found = [
            controlled_effects(cells, first, self.level, never=never) for never in (True, False)
        ]
        starts = (None, *self.panel.dates)
        sizes = cells.weights if self.panel.rows else cells.sizes.sum(axis=1)
        return StaggeredDidResult(
            cohorts=[
                Cohort(start=start, size=float(size), used=bool(used))
                for start, size, used in zip(starts, sizes, cells.known, strict=True)
            ],
            periods=list(range(first, last + 1)),
            never=found[0],
            not_yet=found[1],
            radius=radius,
            centre=self.panel.centre,
            confidence_level=self.level,
            estimand=_PERSONS if self.panel.rows else _ROWS,
            n=self.n,
            warnings=self._warnings(cells, told=any(a is not None for a in found)),
        )

    def _warnings(self, cells: CohortCells, *, told: bool) -> list[str]:
        names = ["never", *map(str, self.panel.dates)]
        lost = [name for name, used in zip(names, cells.known, strict=True) if not used]
        said = [_LOST.format(", ".join(lost))] if lost else []
        return said if told else [*said, _NONE]


def lengths_to(longest: float) -> tuple[float, ...]:
    """Public lengths, increasing up to the longest one."""
    return tuple((longest * 2.0 ** (-np.arange(LENGTHS - 1.0, -1.0, -1.0) / 3)).tolist())


def radius_tree(panel: CohortPanel, units: int, rho: int, unit_rows: int) -> QuantileTree:
    """The selection of a place among the lengths, for `units` persons or rows. Raises
    InvalidPrivacy where `rho` selects nothing."""
    m, together = (1, panel.rows) if panel.rows else (unit_rows, 1)
    grid = Grid(0, LENGTHS - 1, integers=True)
    for p in _PROBABILITIES:
        tree = QuantileTree(grid, (p,), rho, m, 1, together)
        if not quantile_tree.ladder(tree).steps:
            raise InvalidPrivacy(_TOO_SMALL)
        if (1 - p) * units > _OFF * quantile_tree.scale(tree):
            break
    return tree


def planned(
    facts: DatasetFacts,
    panel: CohortPanel,
    longest: float,
    expected: tuple[float, ...],
    sd: float | None,
    level: float,
    rho: int,
) -> StaggeredDidPlan:
    """Group–time effects at `rho` (RHO_UNITS). longest: no vector z is longer."""
    m = facts.schema.unit.max_rows
    share = max(1, int(SHARE * rho))
    if share >= rho:
        raise InvalidPrivacy(_TOO_SMALL)
    units = facts.persons if panel.rows and facts.persons else facts.n
    tree = radius_tree(panel, units, share, m)
    part = cell_part(panel, rho - share, m)
    return StaggeredDidPlan(panel, tree, part, longest, expected, sd, level, facts.n)
