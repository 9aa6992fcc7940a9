# SPDX-License-Identifier: Apache-2.0
"""A fit whose last two scores are cut as a whole, at a released rank from the top: the textbook's target.

Early steps bring θ near (fitting.recipe, with weights and a cut of each residual). Then

1. lengths of the records' scores, and of their rows (fitting.row_tail);
2. the score, cut at C, and the second moment of the rows, cut at L: one vector of a record;
3. the score again at the new θ, cut at the same C, with its meat.

Of a linear score each of the two would do: θ + H⁻¹g does not depend on θ. The filter pools them by their noise, and
the second leaves of what H is wrong by its square only.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from scipy.special import chdtri

from reticent_server.domain.steps import (
    FloatArray,
    GramSum,
    OneVector,
    Released,
    Step,
    SumStep,
    VectorSum,
)
from reticent_server.fitting.covariance import calmed_meat, sandwich
from reticent_server.fitting.filter import (
    Correction,
    PublicModel,
    StepCurvature,
    _curvature_error as curvature_error,
    corrected_curvature,
    moved,
    no_correction,
    prior,
    surprised,
)
from reticent_server.fitting.identifiability import fit_directions
from reticent_server.fitting.maps import FitState, ScoreMap
from reticent_server.fitting.recipe import Fitting, NoisyNewton, StandardFit, State
from reticent_server.fitting.row_tail import LengthGrid, RowCut, chosen_cut
from reticent_server.fitting.whitening import Whitening
from reticent_server.fitting.whole_scores import UNBOUNDED, PlainScore, WholeLengthsMap
from reticent_server.numerics.matrices import floored, power

WHOLE = 3
PUBLIC_REACH = 9.0  # squared length per coordinate of a rare row, and a little more: longer ones are ends of ranges that nobody may be at
_CONTRADICTION = 1e-3
LEAST_REACH = 2.0  # sqrt(4 q)
UNLIKE = 0.35
DRIFT = 0.25  # residual scales by which a predictor may change from the early steps' solution
_LEAST_CURVATURE = 0.03  # of the expected one


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """A step's mean score (q,) with noise of sd, and the way (q,) that it went."""

    score: FloatArray
    sd: float
    way: FloatArray


def by_secant(curvature: StepCurvature, before: Seen, g: FloatArray, sd: float) -> StepCurvature:
    """The curvature as two scores tell it along the way between them, where they contradict it (symmetric rank one)."""
    s, H = before.way, curvature.H
    v = before.score - g - H @ s
    spread = (sd**2 + before.sd**2) * np.eye(len(s)) + curvature_error(np.outer(s, s), curvature)
    if float(v @ np.linalg.solve(spread, v)) <= chdtri(len(s), _CONTRADICTION) or not v @ s:
        return curvature
    corrected = H + np.outer(v, v) / float(v @ s)
    if float(np.linalg.eigvalsh(corrected)[0]) <= 0.0:
        return curvature
    B = np.linalg.inv(curvature.back)
    J = curvature.unit * corrected
    return replace(curvature, J=J, E=B @ J @ B)


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """C of the scores and L of the rows, with what they take."""

    scores: RowCut
    reach: float
    lost: float


@dataclass(frozen=True, slots=True, eq=False)
class WholeNewton(NoisyNewton):
    """The same with the last two scores cut as a whole."""

    def fit(self) -> Fitting:
        whitening, count, present = yield from self._whitening()
        state = self._started(whitening, count, present=present)
        model, T = self.public_model(whitening), self.budget.steps
        for t in range(T - WHOLE):
            state = yield from self._early(state, model, t)
        point = FitState(state.theta, whitening.transform, UNBOUNDED, PlainScore(state.scale))
        cuts = yield from self._cuts(point, model.whitening.rows @ model.frequency.T, state.count)
        score = PlainScore(state.scale)
        plain = replace(model, radius_squared=UNBOUNDED)
        state = replace(
            state, covariance=state.covariance + prior(whitening, DRIFT * state.scale), way=None
        )
        curvature, state, jacobian, seen = yield from self._first(plain, state, score, cuts)
        for t in range(T - WHOLE + 1, T - 1):
            curvature, state, seen = yield from self._middle(
                plain, state, score, cuts, curvature, t, seen
            )
        return (yield from self._second(plain, state, score, cuts, curvature, jacobian, seen))

    def _early(
        self, state: State, model: PublicModel, t: int
    ) -> Generator[Step, tuple[Released, ...], State]:
        whitening, T = model.whitening, self.budget.steps
        score = self.family.score(state.scale, T - 1 - t)
        step = self._score_step(state, whitening, score, t)
        released = yield from self._asked(step, self.budget.on_part(t))
        curvature = self._expected(model, state, score)
        g, noise = self._gradient(state, whitening, score, released[0])
        state = self._stepped(model, state, score, (g, noise), curvature)
        if self.budget.scales and self.family.residuals is not None:
            step = self._scale_step(state, whitening, t)
            (residuals,) = yield from self._asked(step, self.budget.scale_on_part(t))
            state = self._rescaled(state, residuals, t)
        return state

    def _cuts(
        self, point: FitState, public: FloatArray, count: float
    ) -> Generator[Step, tuple[Released, ...], Cuts]:
        unit = sqrt(self.sizes.size)
        scores, rows = LengthGrid(unit), LengthGrid(unit)
        m = self.sizes.unit_rows
        parts = (scores.part(self.budget.tail, m), rows.part(self.budget.rows_tail, m))
        measured = WholeLengthsMap(self.coding, point, scores, rows)
        first, second = yield SumStep("lengths of scores", parts, measured)
        cut = chosen_cut(scores, first, count, self.budget.rank)
        reach, lost = self._reach(rows, second, public, count)
        return Cuts(cut, reach, lost)

    def _reach(self, rows: LengthGrid, released: Released, public: FloatArray, count: float) -> tuple[float, float]:
        """L, and the trace beyond the public rows' that a cut at L takes."""
        N, cov = rows.beyond(released)
        sd = np.sqrt(np.diag(cov))
        unclear = np.flatnonzero(N <= 3 * sd)
        upto = int(unclear[0]) if len(unclear) else len(N)
        N = np.where(np.arange(len(N)) < upto, np.maximum(N, 0.0), 0.0) / count
        lengths = np.sqrt(np.sum(public**2, axis=1))
        N -= np.mean(lengths[:, None] > rows.edges, axis=0)
        squared = rows.edges**2
        taken = np.append(np.cumsum(((N[1:] + N[:-1]) / 2 * np.diff(squared))[::-1])[::-1], 0.0)
        taken = np.maximum(taken, 0.0)
        q, rho = self.sizes.size, self.budget.jacobians[-WHOLE]
        unit = sqrt(2) * self.sizes.unit_rows / sqrt(2 * rho / 10**12) * sqrt(2 * q) / count
        wide = rows.edges >= LEAST_REACH * rows.unit
        at = int(np.argmin(np.where(wide, taken + unit * squared, np.inf)))
        return float(rows.edges[at]), float(taken[at])

    def _first(
        self, model: PublicModel, state: State, score: PlainScore, cuts: Cuts
    ) -> Generator[
        Step, tuple[Released, ...], tuple[StepCurvature, State, Released]
    ]:
        q, m, t = self.sizes.size, self.sizes.unit_rows, self.budget.steps - WHOLE
        whitening = model.whitening
        parts = (
            VectorSum(q, cuts.scores.length, self.budget.gradients[t], m),
            GramSum(q, cuts.reach, self.budget.jacobians[t], m),
        )
        scores = ScoreMap(self.coding, self._plain(state, whitening, score), np.zeros(q), True)
        g, jacobian = yield SumStep(
            f"newton step {t + 1}", parts, scores, joint=OneVector(vector=0, curvature=1)
        )
        curvature = self._plain_curvature(model, state, score, jacobian, cuts)
        state, seen = self._whole_step(state, model, curvature, g)
        return curvature, state, jacobian, seen

    def _middle(
        self,
        model: PublicModel,
        state: State,
        score: PlainScore,
        cuts: Cuts,
        curvature: StepCurvature,
        t: int,
        seen: Seen,
    ) -> Generator[Step, tuple[Released, ...], tuple[StepCurvature, State, Seen]]:
        q, m = self.sizes.size, self.sizes.unit_rows
        part = VectorSum(q, cuts.scores.length, self.budget.gradients[t], m)
        scores = ScoreMap(self.coding, self._plain(state, model.whitening, score), np.zeros(q))
        (g,) = yield SumStep(f"newton step {t + 1}", (part,), scores)
        curvature = by_secant(curvature, seen, g.values / state.count, g.sd / state.count)
        return (curvature, *self._whole_step(state, model, curvature, g))

    def _plain_curvature(
        self, model: PublicModel, state: State, score: PlainScore, released: Released, cuts: Cuts
    ) -> StepCurvature:
        clipped = replace(model, radius_squared=cuts.reach**2)
        B = power(self._public(clipped, state, score), -0.5)
        E = B @ (released.values / state.count) @ B
        noise = released.sd / state.count * np.sum(B**2, axis=1)
        lost = cuts.lost * np.sum(B**2, axis=1) / 2
        unlike = np.hypot(UNLIKE, np.minimum(lost, 1.0))
        known = no_correction(model.whitening, UNLIKE)
        variance = known.error + unlike**2
        gain = variance / (variance + noise**2)
        E = np.eye(len(E)) + np.minimum.outer(gain, gain) * (E - np.eye(len(E)))
        shape = np.hypot(unlike * np.sqrt(1 - gain), np.minimum(lost, 1.0))
        error = (1 - gain) * known.error
        wide = max(cuts.reach**2, PUBLIC_REACH * self.sizes.size)
        J = self._public(replace(model, radius_squared=wide), state, score)
        corrected = Correction(floored(E, _LEAST_CURVATURE, 1e6), error, np.minimum(shape, 1.0))
        return corrected_curvature(J, score.unit, corrected)

    def _whole_step(
        self, state: State, model: PublicModel, curvature: StepCurvature, released: Released
    ) -> tuple[State, Seen]:
        g, sd = released.values / state.count, released.sd / state.count
        noise = sd**2 * np.eye(len(g))
        C = surprised(state.covariance, curvature, noise, g)
        step = moved(C, curvature, noise, g)
        theta = self._kept(state.theta + model.whitening.transform.T @ step.way)
        after = replace(state, theta=theta, covariance=step.covariance, way=step.way)
        return after, Seen(g, sd, step.way)

    def _plain(self, state: State, whitening: Whitening, score: PlainScore) -> FitState:
        return FitState(state.theta, whitening.transform, UNBOUNDED, score)

    def _second(
        self,
        model: PublicModel,
        state: State,
        score: PlainScore,
        cuts: Cuts,
        curvature: StepCurvature,
        jacobian: Released,
        seen: Seen,
    ) -> Generator[Step, tuple[Released, ...], StandardFit]:
        q, m, t = self.sizes.size, self.sizes.unit_rows, self.budget.steps - 1
        whitening, C = model.whitening, cuts.scores.length
        parts = (
            VectorSum(q, C, self.budget.gradients[t], m),
            GramSum(q, C, self.budget.meat, m),
        )
        scores = WholeScoreMap(self.coding, self._plain(state, whitening, score))
        g, meat = yield SumStep(
            f"newton step {t + 1}", parts, scores, joint=OneVector(vector=0, meat=1)
        )
        curvature = by_secant(curvature, seen, g.values / state.count, g.sd / state.count)
        after, _ = self._whole_step(state, model, curvature, g)
        A = np.asarray(np.linalg.inv(curvature.H))
        inside = cuts.scores.squares / max(float(np.trace(curvature.J)), 1e-9)
        expected = inside * curvature.J
        Q = calmed_meat(meat.values / state.count, meat.sd / state.count, expected)
        sampling = sandwich(A, Q, state.count)
        taken = (cuts.scores.allowance / state.count) ** 2 * A @ A.T
        back = power(self._public(replace(model, radius_squared=cuts.reach**2), state, score), 0.5)
        B = np.linalg.inv(back)
        noise = jacobian.sd / state.count * np.sum(B**2, axis=1)
        directions = fit_directions(
            whitening,
            back,
            jacobian.values / state.count,
            noise,
            after.covariance + sampling,
            state.count / cuts.reach**2,
            present=state.present,
        )
        rest = after.covariance + sampling
        told = cuts.scores.told
        W = whitening.transform
        return StandardFit(
            theta=after.theta,
            sampling=np.asarray(W.T @ sampling @ W),
            privacy=np.asarray(W.T @ (after.covariance + taken) @ W),
            scale=state.scale,
            directions=directions if told else directions.none,
            count=state.count,
            information=_symmetric(np.linalg.solve(W, np.linalg.solve(W, curvature.J).T)),
            inverse=np.asarray(W.T @ np.linalg.inv(curvature.J) @ W),
            transform=W,
            cut=cuts.scores,
            taken=np.asarray(W.T @ taken @ W),
        )


@dataclass(frozen=True, slots=True, eq=False)
class WholeScoreMap:
    """Gives the plain score twice: for the gradient, and for the meat of its own integers."""

    coding: "object"
    point: FitState

    def __call__(self, block):
        (score,) = ScoreMap(self.coding, self.point, np.zeros(len(self.point.theta)))(block)
        return (score, score)


def _symmetric(M: FloatArray) -> FloatArray:
    return np.asarray((M + M.T) / 2)
