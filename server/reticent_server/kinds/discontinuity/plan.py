# SPDX-License-Identifier: Apache-2.0
"""A planned jump of two local lines, by one bounded functional.

Steps, each a sum over records at numbers that are public or released before it:

0. *range*, where no profile tells it: quartiles of the response within the bandwidth;
1. *moments*: Σ a(1, u, u²) and Σ a(1, u)y′ by side (discontinuity.records), from which come two
   lines and the weights ℓ = a(w₀ + w₁u) of a local linear fit at the cut-off (discontinuity.lines);
2. *lengths*: how many pieces |ψ| = |ℓ r| are longer than a length, r the residual from these lines,
   and how many residuals; of the last the slope of a tail, by which intervals are declined;
3. *jump*: Σ min(|ψ|, C) sign ψ with its squares, C at a rank from the top of step 2.

τ̂ is the jump of step 1's lines plus Σψ: a Newton step of the local linear estimator, exact but for
products of two errors of step 1 (discontinuity.lines), which are counted. Its variance is

    Σψ² + noise² + products² + allowance²,

Σψ² the sandwich's, and the allowance what the cut takes (fitting.row_tail).

*Why it is short*: a fit releases four scores, whose noise an inverse Gram matrix stretches; here one
number is released, whose pieces are as long as a record's own influence on the jump: 6/N a residual
of N records on a side.

*Privacy* (unconditional; neighbours replace one record). Every contribution is a function of one
record, of public numbers and of earlier releases, bounded by the primitive that adds it:

    range     a cell of a public grid    QuantileTree   (mechanisms.quantile_tree)
    moments   ‖v‖ ≤ 1.58                 VectorSum      Δ = 3.16
    lengths   one position on each grid  RunningCounts  (mechanisms.running_counts)
    jump      |ψ/C| cut to 1, its square PowerSum       the diameter of (t, 1.4t²) (mechanisms.power_sum)

C, w and the lines are post-processing of earlier steps. The ρ of all parts add up under adaptive
composition of zCDP; all else is post-processing. tests/privacy/test_discontinuity_privacy.py
attains each bound.

Source: this project; Hahn, Todd & van der Klaauw (2001) for the estimator.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from reticent_server.domain.design import Design, TriangleWeight
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import (
    Block,
    FloatArray,
    PowerSum,
    QuantileTree,
    Released,
    Step,
    SumStep,
    VectorSum,
)
from reticent_server.errors import InvalidPrivacy
from reticent_server.fitting.own_profile import NO_PROFILE
from reticent_server.fitting.results import RegressionResult
from reticent_server.fitting.row_tail import LengthGrid, RowCut, chosen_cut
from reticent_server.fitting.special_columns import special
from reticent_server.kinds.discontinuity.expected import ExpectedJump, expected_jump
from reticent_server.kinds.discontinuity.lines import SideLine, side_lines
from reticent_server.kinds.discontinuity.records import (
    CLIP,
    SIDES,
    SIZE,
    JumpMap,
    LocalRecords,
    MomentMap,
    PieceLengthsMap,
    Pieces,
)
from reticent_server.kinds.discontinuity.result import JumpSums, jump_result
from reticent_server.kinds.shared.answers import LEAST_SQUARES
from reticent_server.kinds.shared.quantile_cells import quantile_part
from reticent_server.kinds.shared.ranges import REACH, clip_range
from reticent_server.mechanisms import noisy_sum
from reticent_server.numerics.grids import candidate_grid, cell_codes

SQUARE = 1.4  # of t²: the largest that costs nothing beside t (kinds.mean.plan)
POWERS = ((0.0, 1.0), (0.0, 0.0, SQUARE))
_RANGE, _MOMENTS, _LENGTHS, _RESIDUALS = 0.1, 0.4, 0.08, 0.05
"""Of ρ, or of what is left of it: a third more or less of any moves widths by less than 4 %."""
RANK = 2.0  # records beyond the cut, in cuts of the sum's noise
_LEAST_RANK = 0.05  # of a record: without noise nothing is cut
_QUARTILES = (0.25, 0.5, 0.75)
_UNIT = 0.25  # of a residual at the cut-off: where the grid of lengths begins is half of it
_RECORD_NANOSECONDS = 300  # of a record in all passes; measured 100
_IN_KERNEL = 2.0  # records within the bandwidth for a sum of weights of 1
_TARGET = "Least squares on each side of the cut-off"
_TOO_SMALL = "epsilon is too small to release a jump; raise it."


@dataclass(frozen=True, slots=True, eq=False)
class RangeMap:
    """(rows,) the cell of the response on its column's public grid, of records within the
    bandwidth.
    """

    records: LocalRecords
    column: Column

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        at = self.records.of(block)
        used = at.used & (at.a > 0)
        return (cell_codes(block.columns[self.column.name], candidate_grid(self.column), used),)


@dataclass(frozen=True, slots=True)
class JumpPlan(Planned):
    """A planned jump. range_part: None where public facts tell the response's range. known: whether
    they tell its spread. expected: by public facts.
    """

    deadline_shares: ClassVar = (0.1, 0.06)

    design: Design
    records: LocalRecords
    column: Column
    range_part: QuantileTree | None
    moments_part: VectorSum
    lengths_rho: int
    residuals_rho: int
    jump_part: PowerSum
    expected: ExpectedJump
    spread: float
    level: float
    n: int

    @property
    def outline(self) -> Outline:
        selections = () if self.range_part is None else (self.range_part,)
        return Outline(
            columns=self.design.columns,
            rho=sum(self._rhos.values()),
            mechanism="discrete Gaussian sums of a local linear fit's influences cut at a rank",
            reference="Hahn, Todd & van der Klaauw (2001); Dwork & Smith (2009)",
            passes=3 + len(selections),
            column_ms=ceil(self.n * _RECORD_NANOSECONDS / 10**6),
            gaussian_counts=(),
            selections=selections,
            answers=LEAST_SQUARES,
        )

    @property
    def _rhos(self) -> dict[str, int]:
        first = {} if self.range_part is None else {"range": self.range_part.rho}
        return first | {
            "moments": self.moments_part.rho,
            "lengths": self.lengths_rho + self.residuals_rho,
            "jump": self.jump_part.rho,
        }

    @property
    def shares(self) -> dict[str, float]:
        """What part of ρ goes to each step."""
        total = max(self.rho, 1)
        return {name: rho / total for name, rho in self._rhos.items()}

    @property
    def forecast(self) -> Mapping[str, Any]:
        """Of the jump: the noise's part of the standard error and sampling, in standard deviations
        of the response, their ratio, and records within the bandwidth.
        """
        notes = [] if self.range_part is None else [NO_PROFILE]
        found = self.expected
        ratio = found.privacy / found.sampling if not found.hidden else None
        return {
            "terms": [self.design.names[1]],
            "privacy_to_sampling": [ratio],
            "records_in_the_bandwidth": found.records,
            "shares": self.shares,
            "notes": notes,
        }

    @property
    def precision(self) -> ForecastPrecision:
        """Of the jump."""
        found, spread = self.expected, self.spread
        privacy = float("inf") if found.hidden else found.privacy * spread
        return ForecastPrecision(
            (self.design.names[1],),
            (privacy,),
            (found.sampling * spread,),
            in_units=self.range_part is None,
        )

    def run(self) -> Recipe:
        """0. The range. 1. Moments. 2. Lengths. 3. The jump."""
        records = self.records
        if self.range_part is not None:
            step = SumStep("range", (self.range_part,), RangeMap(records, self.column))
            (quartiles,) = yield step
            centre, half = _span(self.column, quartiles.values)
            records = replace(records, centre=centre, half=half)
        (moments,) = yield SumStep("moments", (self.moments_part,), MomentMap(records))
        sides = side_lines(moments)
        pieces = Pieces(
            records,
            np.stack([side.weights for side in sides]),
            np.stack([side.line for side in sides]),
        )
        cut = yield from self._lengths(pieces, sides)
        (powers,) = yield SumStep("jump", (self.jump_part,), JumpMap(pieces, cut.length))
        return self._result(records, sides, JumpSums(powers, cut, SQUARE))

    def _lengths(
        self, pieces: Pieces, sides: tuple[SideLine, SideLine]
    ) -> Generator[Step, tuple[Released, ...], RowCut]:
        longest = max(float(np.abs(side.weights[0])) for side in sides)
        unit = _UNIT * pieces.records.half / REACH
        grid, residuals = LengthGrid(unit * longest), LengthGrid(unit)
        parts = (grid.part(self.lengths_rho, 1), residuals.part(self.residuals_rho, 1))
        step = SumStep("lengths", parts, PieceLengthsMap(pieces, grid, residuals))
        lengths, beyond = yield step
        count = max(_IN_KERNEL * sum(side.total for side in sides), 1.0)
        rank = rank_of(self.jump_part)
        # the slope before a cut tells tails of residuals, not of their products
        bulk = chosen_cut(residuals, beyond, count, rank).bulk
        return replace(chosen_cut(grid, lengths, count, rank), bulk=bulk)

    def _result(
        self, records: LocalRecords, sides: tuple[SideLine, SideLine], sums: JumpSums
    ) -> RegressionResult:
        return jump_result(
            records,
            sides,
            sums,
            level=self.level,
            shares=self.shares,
            estimand=_TARGET + special(self.design),
            n=self.n,
        )


def plan_jump(
    facts: DatasetFacts,
    design: Design,
    column: Column,
    running: Column,
    level: float,
    rho: int,
) -> JumpPlan:
    """A jump at `rho` (RHO_UNITS). design: of kind.local_design, with a TriangleWeight. Raises
    InvalidPrivacy where `rho` is too small.
    """
    response, kernel = design.response, design.weight
    if response is None or not isinstance(kernel, TriangleWeight):
        raise RuntimeError("a jump has a response and a kernel")
    span = clip_range(facts, column)
    known = span.sd is not None or column.is_dummy
    range_part = None if known else quantile_part(facts, column, _QUARTILES, int(_RANGE * rho))
    left = rho - (range_part.rho if range_part else 0)
    moments, lengths, residuals = (int(share * left) for share in (_MOMENTS, _LENGTHS, _RESIDUALS))
    if min(moments, lengths, residuals) < 1:
        raise InvalidPrivacy(_TOO_SMALL)
    moments_part = VectorSum(SIDES * SIZE, CLIP, moments)
    jump_part = PowerSum(POWERS, left - moments - lengths - residuals)
    reach = span.half / span.sd if span.sd else REACH
    return JumpPlan(
        design=design,
        records=LocalRecords(design, response, kernel, span.centre, span.half),
        column=column,
        range_part=range_part,
        moments_part=moments_part,
        lengths_rho=lengths,
        residuals_rho=residuals,
        jump_part=jump_part,
        expected=expected_jump(
            facts,
            running,
            kernel,
            reach,
            noisy_sum.noise_sd(moments_part),
            noisy_sum.noise_sd(jump_part),
            rank_of(jump_part),
        ),
        spread=span.sd or span.half / REACH,
        level=level,
        n=facts.n,
    )


def rank_of(part: PowerSum) -> float:
    """How many records the cut leaves beyond it."""
    return max(RANK * noisy_sum.noise_sd(part), _LEAST_RANK)


def _span(column: Column, quartiles: FloatArray) -> tuple[float, float]:
    """m and R of a response with these quartiles: REACH standard deviations of a normal one on each
    side, within the declared bounds; these where the quartiles tell no spread.
    """
    first, middle, third = quartiles.tolist()
    z = REACH / float(ndtri(_QUARTILES[2]))
    lower = max(middle - z * (middle - first), column.lower)
    upper = min(middle + z * (third - middle), column.upper)
    if not lower < upper:
        lower, upper = column.lower, column.upper
    return (lower + upper) / 2, max((upper - lower) / 2, float(np.finfo(float).tiny))
