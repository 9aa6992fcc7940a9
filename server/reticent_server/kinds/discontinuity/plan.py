# SPDX-License-Identifier: Apache-2.0
"""A planned jump: a first look at both sides, then one sum of the influences of what it leaves.

With the notation of discontinuity.local_fit, s = 0 below the cut-off and 1 above:

1. *moments*: by side G = Σ a q qᵀ and T = Σ a q z. From them w = G⁻¹q(0), and lines R·G⁻¹T, a
   first look, on y cut to centre ± R.
2. *lengths*: how many influences |ψ| of each sign, and residuals of each side and sign, are longer
   than a length (fitting.row_tail, discontinuity.tails). ψ is of y itself, not cut.
3. *jump*: Σ t and Σ t², t = ψ/C cut to ±1, C at a rank from the top of step 2.

The jump is the first look's plus C Σt. Were G exact, it would be that of least squares whatever the
first look said, as Σ_i ℓ_i (lines' value) = w₁ᵀGb₁ − w₀ᵀGb₀ = the first look's jump. With the noise
N of G, b* the least-squares lines and b the first look's,

    error = w₁ᵀN₁(b₁ − b*₁) − w₀ᵀN₀(b₀ − b*₀) + noise of CΣt + what the cut takes,

a product of two errors. N is Σ_l σ_l ξ_l U_l, U_l symmetric with a 1 in one place of the upper
triangle, so its variance is Σ_l σ_l² (U_l w)ᵀ S (U_l w) by side, S the second moment of b − b*:
noise of T, N b*, and the jump that step 3 has added, along G⁻¹q(0), which tells what cutting y at R
has done. Sampling: C² Σt², the sandwich without a correction (HC0).

*Privacy* (unconditional; neighbours replace one record). Every contribution is a function of one
record, of public numbers and of earlier releases, bounded by the primitive that adds it:

    moments   |√a (q_0, …, q_k, t z)| ≤ C                 GramSum        Δ = √2 C²
    lengths   one position of one line of each grid      RunningCounts  (mechanisms.running_counts)
    jump      (t, 1.4t²), |t| ≤ 1                        PowerSum       its diameter, 2

C² = (k + 1)(k + 2)/2 + t², reached at the cut-off with |z| = 1, from where a Σ q_l² falls: two
records there, one on each side, are at a right angle, and attain Δ. The ρ of all parts add up under
adaptive composition of zCDP; C and all else is post-processing. A profile of y, where none is
known, is charged as such (fitting.own_profile). tests/privacy/
test_discontinuity_privacy.py attains each bound.

Sources: Hahn, Todd & van der Klaauw (2001); Imbens & Lemieux (2008); Calonico, Cattaneo & Titiunik
(2014), remark 7, for order 2; one Newton step with an exact score: Bickel (1975).
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, hypot, inf, isfinite, sqrt
from typing import Any, ClassVar

import numpy as np

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import (
    FloatArray,
    GramSum,
    PowerSum,
    Released,
    RunningCounts,
    Step,
    SumStep,
)
from reticent_server.errors import InvalidPrivacy
from reticent_server.fitting import trust
from reticent_server.fitting.own_profile import (
    OwnProfile,
    counts_of,
    lacking,
    plan_own_profile,
    profile_notes,
    selections_of,
)
from reticent_server.fitting.results import RegressionResult
from reticent_server.fitting.row_tail import LengthGrid, RowCut
from reticent_server.kinds.discontinuity.jump import FirstLook, JumpSums, jump_result
from reticent_server.kinds.discontinuity.local_fit import (
    JumpInfluence,
    JumpInfluenceMap,
    JumpLengthsMap,
    SideGramMap,
    Window,
    basis,
)
from reticent_server.kinds.discontinuity.tails import (
    SIDES_AND_SIGNS,
    SIGNS,
    ResidualTails,
    hidden_share,
    residual_tails,
    signed_cut,
)
from reticent_server.kinds.shared import answers
from reticent_server.kinds.shared.ranges import clip_range, public_sd, share_below, spread
from reticent_server.mechanisms import noisy_sum, running_counts
from reticent_server.mechanisms.quantise import exactly

SQUARE = 1.4  # of t²: the largest that costs nothing beside t (mechanisms.power_sum)
POWERS = ((0.0, 1.0), (0.0, 0.0, SQUARE))
# of ρ; a third more or less of any moves widths by less than 3 %
_MOMENTS, _LENGTHS, _RESIDUALS = 0.18, 0.12, 0.2
_RANKS = (0.5, 1.0, 2.0)  # records beyond the cut, in noises of Σt: the best is taken
_LEAST_RANK = 0.05  # of a record: without noise nothing is cut
_UNIT = 0.5  # of a spread: where the grid of lengths begins is a fourth of it
_UNKNOWN = 1 / 16  # of the declared range, a spread that no profile tells
_LONG = 3.5  # a cut is about so many standard deviations at the cut-off
_BOUNDED = 8.0  # standard deviations between declared bounds, within which no tail is heavy
_TOO_SMALL = "epsilon is too small to release a jump; raise it."
_RECORD_NANOSECONDS = 150  # planned for a record in one pass and degree; measured: 40


@dataclass(frozen=True, slots=True)
class JumpShares:
    """ρ of each part (RHO_UNITS)."""

    moments: int
    lengths: int
    residuals: int
    jump: int


@dataclass(frozen=True, slots=True)
class JumpPlan(Planned):
    """A planned jump. column, running: of y and the running variable. window: with a reach by
    public facts. deviation: of y, by these. own: a profile of y that is made first.
    """

    deadline_shares: ClassVar = (0.05, 0.05)

    facts: DatasetFacts
    column: Column
    running: Column
    window: Window
    deviation: float
    shares: JumpShares
    own: OwnProfile | None
    terms: tuple[str, ...]
    level: float

    @property
    def bounded(self) -> bool:
        """Whether declared bounds leave no room for a tail."""
        sd = public_sd(self.facts, self.column)
        width = self.column.upper - self.column.lower
        return self.column.is_dummy or (sd is not None and width <= _BOUNDED * sd)

    @property
    def outline(self) -> Outline:
        s, n = self.shares, self.facts.n
        row = _RECORD_NANOSECONDS * 3 * (self.window.order + 1)
        return Outline(
            columns=self.window.design.columns,
            rho=s.moments + s.lengths + s.residuals + s.jump + (self.own.rho if self.own else 0),
            mechanism="discrete Gaussian sums of influences cut at a rank",
            reference="Hahn, Todd & van der Klaauw (2001); Canonne, Kamath & Steinke (2020)",
            passes=3 + (self.own is not None),
            column_ms=ceil(n * row / 10**6),
            draws=self.own.draws if self.own else 0,
            gaussian_counts=counts_of(self.own),
            selections=selections_of(self.own),
            answers=answers.LEAST_SQUARES,
        )

    @property
    def forecast(self) -> Mapping[str, Any]:
        """Of the jump, where records are spread as the profile of `running` says, or evenly, and y
        varies about the lines as it does by itself: standard errors, their ratio (None where no
        interval is expected), and records within the bandwidth.
        """
        privacy, sampling = self._expected
        return {
            "terms": [self.terms[1]],
            "privacy_to_sampling": [privacy / sampling if isfinite(privacy) else None],
            "records_in_the_bandwidth": 2 * sum(self._weights),
            "shares": self.spent,
            "notes": profile_notes(self.own),
        }

    @property
    def precision(self) -> ForecastPrecision:
        """Of the jump."""
        privacy, sampling = self._expected
        return ForecastPrecision(
            (self.terms[1],), (privacy,), (sampling,), in_units=self.own is None
        )

    @property
    def spent(self) -> dict[str, float]:
        """What part of ρ goes to each step."""
        s, rho = self.shares, max(self.rho, 1)
        own = {} if self.own is None else {"profile": self.own.rho}
        every = {"moments": s.moments, "lengths": s.lengths + s.residuals, "jump": s.jump}
        return {name: part / rho for name, part in (own | every).items()}

    @property
    def _expected(self) -> tuple[float, float]:
        """Standard errors of noise, infinite where no interval is expected, and of sampling."""
        look = FirstLook.expected(self.window.order, self._weights, self._sds, self.window.reach)
        sampling = self.deviation * look.sampling
        part = LengthGrid(1.0).part(self.shares.residuals, 1, SIDES_AND_SIGNS)
        seen = hidden_share(running_counts.noise_sd(part), look.count)
        tail = trust.jump_tail(None, seen, told=True, bounded=self.bounded)
        if not look.known or not tail.intervals:
            return inf, sampling
        noise = noisy_sum.noise_sd(self._jump_part) * _LONG * self.deviation * look.longest
        return hypot(noise, look.leak(0.0)), sampling

    @property
    def _weights(self) -> tuple[float, float]:
        """Expected Σa of each side."""
        kernel, n = self.window.kernel, self.facts.n
        ends = kernel.centre - kernel.width, kernel.centre, kernel.centre + kernel.width
        below, at, above = (share_below(self.facts, self.running, end) for end in ends)
        return max(n * (at - below) / 2, 1.0), max(n * (above - at) / 2, 1.0)

    @property
    def _sds(self) -> tuple[FloatArray, float]:
        """Standard deviations of the noise of G's places (d,), and of T."""
        rows = self.moment_rows
        sd = noisy_sum.noise_sd(self._moments_part(rows))
        off = sd / sqrt(2)
        return np.where(basis(self.window.order).on_diagonal, sd, off), off / rows.weight

    @property
    def moment_rows(self) -> SideGramMap:
        """What a record adds to the first sums. t² = (k + 1)(k + 2)/6: the product of the noises of
        G and of T, σ_G σ_T ∝ C⁴/t, is least.
        """
        k = self.window.order
        return SideGramMap(self.window, sqrt((k + 1) * (k + 2) / 6))

    def _moments_part(self, rows: SideGramMap) -> GramSum:
        part = GramSum(2 * (self.window.order + 2), rows.clip, self.shares.moments, groups=2)
        return exactly(part, 1.0)  # a record's share under a uniform kernel

    @property
    def _jump_part(self) -> PowerSum:
        return PowerSum(POWERS, self.shares.jump)

    def run(self) -> Recipe:
        """1. A profile of y, where there is none. 2. Moments. 3. Lengths. 4. The jump."""
        plan = self
        if self.own is not None:
            released = yield self.own.step
            plan = replace(self, own=None).seen(self.own.profiled(released))
        return (yield from plan.released(profile_notes(self.own)))

    def seen(self, facts: DatasetFacts) -> "JumpPlan":
        """The same with the range of y that these facts tell."""
        span = clip_range(facts, self.column)
        window = replace(self.window, centre=span.centre, reach=span.half)
        return replace(self, window=window, deviation=spread(facts, self.column, span))

    def released(
        self, notes: Sequence[str]
    ) -> Generator[Step, tuple[Released, ...], RegressionResult]:
        """The three steps, and the reply. notes: further warnings."""
        rows = self.moment_rows
        (moments,) = yield SumStep("moments", (self._moments_part(rows),), rows)
        look = FirstLook.of(moments.values, rows, self._sds)
        influence = JumpInfluence(self.window, look.weights, look.lines)
        cut, tails = yield from self._cut(influence, look)
        step = SumStep("jump", (self._jump_part,), JumpInfluenceMap(influence, cut.length))
        (powers,) = yield step
        sums = JumpSums(powers, SQUARE, cut, tails)
        return jump_result(self, look, sums, notes)

    def _cut(
        self, influence: JumpInfluence, look: FirstLook
    ) -> Generator[Step, tuple[Released, ...], tuple[RowCut, ResidualTails]]:
        unit = _UNIT * self.deviation
        grids = influences, residuals = LengthGrid(unit * look.typical), LengthGrid(unit)
        step = SumStep("lengths", self._length_parts(*grids), JumpLengthsMap(influence, *grids))
        psi, residual = yield step
        tails = residual_tails(residuals, residual, look.count)
        slope = None if self.bounded else tails.slope
        noise = noisy_sum.noise_sd(self._jump_part)
        ranks = [max(rank * noise, _LEAST_RANK) for rank in _RANKS]
        cuts = [signed_cut(influences, psi, look.count, rank, slope) for rank in ranks]
        return min(cuts, key=lambda c: hypot(noise * c.length, c.excess)), tails

    def _length_parts(
        self, influences: LengthGrid, residuals: LengthGrid
    ) -> tuple[RunningCounts, RunningCounts]:
        return (
            influences.part(self.shares.lengths, 1, SIGNS),
            residuals.part(self.shares.residuals, 1, SIDES_AND_SIGNS),
        )


def plan_jump(
    facts: DatasetFacts,
    window: Window,
    columns: tuple[Column, Column],
    terms: tuple[str, ...],
    level: float,
    rho: int,
) -> JumpPlan:
    """The jump at `rho` (RHO_UNITS). columns: y and the running variable. window: of these, with
    any range. terms: names of the coefficients. Raises InvalidPrivacy where `rho` is too small.
    """
    y, running = columns
    unknown = [c for c in lacking(facts, window.design) if c.name == y.name]
    own = plan_own_profile(facts, window.design, rho, unknown) if unknown else None
    left = rho - (own.rho if own else 0)
    moments, lengths, residuals = (int(s * left) for s in (_MOMENTS, _LENGTHS, _RESIDUALS))
    if min(moments, lengths, residuals) < 1:
        raise InvalidPrivacy(_TOO_SMALL)
    shares = JumpShares(moments, lengths, residuals, left - moments - lengths - residuals)
    deviation = _UNKNOWN * (y.upper - y.lower)
    plan = JumpPlan(facts, y, running, window, deviation, shares, own, terms, level)
    return plan if own else plan.seen(facts)
