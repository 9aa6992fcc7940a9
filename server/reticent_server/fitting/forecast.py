# SPDX-License-Identifier: Apache-2.0
"""What a planned fit will be worth, from public facts alone: each coefficient's privacy noise
beside its sampling error, and what the releases will not tell from not identified.

The recipe's own functions are gone through with every release at its expected value: the public
rows in place of the records, so a clipped moment is the public one, a Jacobian the expected one,
and only the noise's planned standard deviations enter. What columns have to do with each other is
unknown then; a fit in whitened coordinates has the same ratio of noise to sampling error however
regressors are correlated, as long as it can tell them apart.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.patience import checkpoint
from reticent_server.domain.steps import FloatArray, GramSum, VectorSum
from reticent_server.fitting import trust
from reticent_server.fitting.covariance import sandwich
from reticent_server.fitting.expected_ground import ExpectedGround, expected_ground
from reticent_server.fitting.expected_way import ExpectedFrame, usable
from reticent_server.fitting.filter import measured_as_expected, missed_share, no_correction
from reticent_server.fitting.identifiability import Directions, fit_directions
from reticent_server.fitting.newton import NoisyNewton, PlannedStep
from reticent_server.fitting.noise import planned_sd
from reticent_server.fitting.report import back_transform
from reticent_server.fitting.row_tail import allowance_covariance
from reticent_server.fitting.sparse_levels import sparse_coefficients
from reticent_server.fitting.trust import BoolArray
from reticent_server.fitting.trust.thresholds import EXPECTED_WAY
from reticent_server.fitting.whitening import Whitening, on_average


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """ratios: (q,) privacy over sampling standard error. estimable: (q,) whether the releases are
    expected to resolve it. error: expected L2 distance from the fit without noise, of white
    coordinates in units of the response's scale. privacy, sampling: (q,) standard errors in the
    units of the data. transform: W (q, q), scale: that of the residuals, as expected. settled:
    whether its error is expected to be small enough for a linear step. unsure: the Jacobian's noise
    over its smallest eigenvalue, as of standard_fit.Freedom. allowance: (q,) the part of `privacy`
    for what a cut of whole scores takes, None without one; told: whether their tail is expected to
    be told.
    """

    ratios: FloatArray
    estimable: NDArray[np.bool_]
    error: float
    privacy: FloatArray
    sampling: FloatArray
    transform: FloatArray
    scale: float
    settled: bool
    unsure: float = 0.0
    allowance: FloatArray | None = None
    told: bool = True

    @property
    def worst(self) -> float:
        """The largest ratio."""
        return float(np.max(self.ratios, initial=0.0))


@dataclass(frozen=True, slots=True, eq=False)
class _LastStep:
    """A planned fit at its end. step: the last; frame: of the expected Jacobian, noise: (q,) its
    own in the frame B, sd: of an entry; left, sampling: covariances (q, q) in u of what is left of
    the way, and of the solution; scale: as expected there."""

    fit: NoisyNewton
    step: PlannedStep
    frame: ExpectedFrame
    noise: FloatArray
    sd: float
    left: FloatArray
    sampling: FloatArray
    scale: float

    @property
    def whitening(self) -> Whitening:
        return self.step.model.whitening

    @property
    def errors(self) -> tuple[FloatArray, FloatArray]:
        """(q,) privacy and sampling standard errors of the coefficients, in the units of the
        data.
        """
        return self._of_coefficients(self.left), self._of_coefficients(self.sampling)

    @property
    def allowances(self) -> FloatArray | None:
        """(q,) the part for what a cut takes, in the same units."""
        if not self.step.allowance:
            return None
        mean = self.step.allowance / self.fit.sizes.expected_n
        return self._of_coefficients(
            allowance_covariance(mean, self.frame.J / self.step.score.unit)
        )

    def _of_coefficients(self, covariance: FloatArray) -> FloatArray:
        """(q,) standard errors, of a covariance (q, q) in u."""
        out = back_transform(self.fit.coding).matrix @ self.whitening.transform.T
        squared = np.maximum(np.sum(out @ covariance * out, axis=1), np.finfo(float).tiny)
        return np.asarray(np.sqrt(squared))

    @property
    def sparse(self) -> BoolArray:
        """(q,) which coefficients are compared with a level of too few events
        (fitting.sparse_levels).
        """
        fit, model = self.fit, self.step.model
        if fit.budget.tail:  # a whole fit counts events by coefficient, once it has scores
            return np.zeros(fit.sizes.size, dtype=bool)
        return sparse_coefficients(
            fit.coding,
            fit.coordinates,
            model,
            self.step.score,
            model.whitening.inside(fit.start),
            self.left + self.sampling,
            fit.sizes.expected_n,
        )

    @property
    def directions(self) -> Directions:
        """In x̃, as the releases are expected to tell them."""
        score, reach = self.step.score, self.step.reach
        records = self.fit.sizes.expected_n / (reach**2 * score.most / score.curvature_bound)
        return fit_directions(
            self.whitening,
            self.frame.back,
            self.frame.J,
            self.noise,
            self.left + self.sampling,
            records,
            present=True,
        )


def forecast_fit(fit: NoisyNewton) -> Forecast:
    """Goes through a planned fit in expectation."""
    end = _last_step(fit)
    privacy, sampling = end.errors
    directions, W = end.directions, end.whitening.transform
    most_off = end.step.score.curvature.most_off
    return Forecast(
        ratios=np.asarray(privacy / sampling),
        estimable=directions.mapped(back_transform(fit.coding).matrix).flags & ~end.sparse,
        error=float(np.sqrt(np.trace(end.left))),
        privacy=privacy,
        sampling=sampling,
        transform=W,
        scale=end.scale,
        settled=trust.linear_step(EXPECTED_WAY.value * directions.off(W), most_off).intervals,
        unsure=directions.unsure(end.frame.J, W, end.sd),
        allowance=end.allowances,
        told=end.step.told,
    )


def _last_step(fit: NoisyNewton) -> _LastStep:
    n, q = fit.sizes.expected_n, fit.sizes.size
    ground = expected_ground(fit.coordinates)
    whitening = _whitened(fit, n, ground)
    public = fit.public_model(whitening)
    theta = whitening.inside(fit.start)
    way, scale = ground.way(whitening.rows, fit.family.offset), fit.family.start
    known, m = no_correction(whitening, fit.family.shape), fit.sizes.unit_rows
    variance = way.variance(whitening.rows)
    for t, rho in enumerate(fit.budget.gradients):
        checkpoint()
        step = fit.planned_step(t, scale, public)
        score, model = step.score, step.model
        J = usable(model.curvature_over(score, theta, variance))
        H, frame = J / score.unit, ExpectedFrame(J, whitening.free)
        if fit.passes.rejoins(t):
            way = way.widened(fit.passes.allowance(H, model.meat(score, theta), n))
        squared = frame.squared(way)
        seen = n / fit.passes.stride(t)
        noise = planned_sd(VectorSum(q, step.clip, rho, m)) / seen
        if fit.budget.jacobians[t]:
            part = GramSum(q, step.reach, fit.budget.jacobians[t], m, score.signed)
            upto = None if t == fit.budget.steps - 1 else whitening.free
            sd = planned_sd(part) / seen
            relative = sd * on_average(np.diag(np.linalg.inv(J)), whitening.free)
            known = measured_as_expected(known, relative, missed_share(squared, score.unit), upto)
        way = way.after(H, frame.error(squared, known, score.unit), noise**2)
        variance = way.variance(whitening.rows)
        scale = fit.scale.forecast(scale, fit.family.start, float(np.mean(variance)))
    A = np.asarray(np.linalg.inv(H))
    sampling = sandwich(A, model.meat(score, theta), n)
    moved = A @ fit.planned_scale_noise(step, theta)
    C = way.covariance + allowance_covariance(step.allowance / n, H) + np.outer(moved, moved)
    return _LastStep(fit, step, frame, relative, sd, C, sampling, scale)


def _whitened(fit: NoisyNewton, n: float, ground: ExpectedGround) -> Whitening:
    q, rounds = fit.sizes.size, fit.budget.rounds
    state = ground.before(rounds[0][1] * q)
    for k, ((rho, factor), stride) in enumerate(zip(rounds, fit.passes.strides, strict=True)):
        checkpoint()
        sd = stride * planned_sd(GramSum(q, sqrt(factor * q), rho, fit.sizes.unit_rows))
        state = ground.after_round(state, k, sd, n, factor * q, last=k == len(rounds) - 1)
        if stride > 1:
            state = ground.after_part(state, n / stride, factor * q)
    return state
