# SPDX-License-Identifier: Apache-2.0
"""What one record contributes to an adjusted effect: functions of the record and of released or
public numbers only.

A is the treatment, x the covariates with a leading 1, e = expit(γᵀx) within [t, 1 − t] and m_a =
μ(βᵀ(1, a, x)) within the response's bounds, γ and β released before. With g, w₁, w₀ of the target
(treatment_effect.targets) and public or released numbers G, S₁, S₀, r, r₁, r₀,

    ψ = g(m₁ − m₀ − r)/G + A w₁(y − m₁ − r₁)/S₁ − (1 − A)w₀(y − m₀ − r₀)/S₀

is the record's influence. Its derivatives are k x by γ, and c₁μ′₁(1, 1, x) + c₀μ′₀(1, 0, x) by β
with c₁ = g/G − Aw₁/S₁ and c₀ = (1 − A)w₀/S₀ − g/G. They are contributed as R∂ψ, RᵀR the covariance
of γ's noise or of β, so that the length of their sum is what that adds to the effect's variance.

Without weights w₁ = w₀ = 0 (g-computation); without a model m₁ = m₀ is a public number (weighting).

Everything is elementwise: a record's values do not depend on the block that it comes in.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from reticent_server.domain.design import Design, Term
from reticent_server.domain.steps import Block, Contribution, FloatArray
from reticent_server.fitting.row_tail import LengthGrid
from reticent_server.kinds.binned_residuals.links import MEANS
from reticent_server.kinds.treatment_effect.nuisance import Nuisance
from reticent_server.kinds.treatment_effect.targets import EffectTarget, Weights
from reticent_server.numerics.evaluate import evaluate_term, in_use

HALF = 0.5  # of g in the first sums, which are dearer the longer a record's are
REACH = 3.0  # residual standard deviations that count in the first sums, which only centre


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """A block's records (rows,): whether in use, A, the propensity as it is and within [t, 1 −
    t], covariates (k, rows) without the 1, y, m₁, m₀ and their slopes.
    """

    used: NDArray[np.bool_]
    treated: FloatArray
    raw: FloatArray
    e: FloatArray
    x: FloatArray
    y: FloatArray
    m: tuple[FloatArray, FloatArray]
    slopes: tuple[FloatArray, FloatArray]
    weights: Weights


@dataclass(frozen=True, slots=True, eq=False)
class AdjustedRecords:
    """How records are read. propensity None: without weights; outcome None: m is `centre`. spread:
    of the response, public. trim: t.
    """

    design: Design
    treated: Term
    target: EffectTarget
    trim: float
    propensity: Nuisance | None
    outcome: Nuisance | None
    link: str
    centre: float
    spread: float

    @property
    def response(self) -> Term:
        """The outcome's term. Raises RuntimeError without one."""
        if self.design.response is None:
            raise RuntimeError("an effect has a response")
        return self.design.response

    @property
    def limits(self) -> tuple[float, float]:
        """The response's declared bounds."""
        return self.response.lower, self.response.upper

    def of(self, block: Block) -> Evaluated:
        """The records of a block; what is out of use or no number is marked by `used` and by
        NaN."""
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            A = evaluate_term(self.treated, block)
            x = np.stack([evaluate_term(term, block) for term in self.design.terms])
            raw = np.full(block.rows, 0.5)
            if self.propensity is not None:
                raw = expit(_linear(self.propensity.coefficients, x))
            e = np.clip(raw, self.trim, 1 - self.trim)
            m, slopes = zip(*(self._mean(x, a) for a in (1.0, 0.0)), strict=True)
            y = np.clip(evaluate_term(self.response, block), *self.limits)
            weights = self.target.weights(e, A)
            used = in_use(self.design, block) & np.isfinite(raw + y + A)
        return Evaluated(used, A, raw, e, x, y, m, slopes, weights)

    def _mean(self, x: FloatArray, a: float) -> tuple[FloatArray, FloatArray]:
        """m_a and μ′_a (rows,)."""
        if self.outcome is None:
            return np.full(x.shape[1], self.centre), np.zeros(x.shape[1])
        first, effect, *slopes = self.outcome.coefficients
        mu, slope = MEANS[self.link], SLOPES[self.link]
        found = mu.mean(_linear(np.array([first + a * effect, *slopes]), x))
        return np.clip(found, *self.limits), slope(found)


SLOPES: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "identity": np.ones_like,
    "logit": lambda mu: np.asarray(mu * (1 - mu)),
    "log": lambda mu: mu,
}
"""dμ/dη of a mean (rows,) by link."""


def _linear(coefficients: FloatArray, x: FloatArray) -> FloatArray:
    """(rows,) the first coefficient, and the others times x (k, rows), added one by one."""
    eta = np.full(x.shape[1], coefficients[0])
    for beta, values in zip(coefficients[1:], x, strict=True):
        eta = eta + beta * values
    return eta


@dataclass(frozen=True, slots=True, eq=False)
class OverlapMap:
    """(rows,) arm · bins + the bin of the propensity. edges: (bins + 1,) from 0 to 1."""

    records: AdjustedRecords
    edges: FloatArray

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        found, bins = self.records.of(block), len(self.edges) - 1
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            place = np.searchsorted(self.edges[1:-1], found.raw, side="right")
            arm = np.where(found.treated > 0, 1, 0)
        return (np.where(found.used, arm * bins + place, -1).astype(np.float64),)


@dataclass(frozen=True, slots=True, eq=False)
class ArmsMap:
    """(6, rows) g(1, δ)/2 over the largest g, A w₁(1, ρ₁)/W, (1 − A)w₀(1, ρ₀)/W with weights cut to
    1 and δ and ρ in REACH spreads, cut to [−1, 1]; then, where `locations` (k, 2) are known, (4k,
    rows) (A, 1 − A, Aw₁/W, (1 − A)w₀/W) ⊗ z.
    """

    records: AdjustedRecords
    largest: float
    locations: FloatArray | None

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        found = self.records.of(block)
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            A = found.treated
            unit = REACH * self.records.spread
            delta = np.clip((found.m[0] - found.m[1]) / unit, -1, 1)
            w1, w0 = self._weights(found)
            r1, r0 = (np.clip((found.y - m) / unit, -1, 1) for m in found.m)
            g = found.weights.target * HALF / self.records.target.most
            arms = np.stack([g, g * delta, w1, w1 * r1, w0, w0 * r0])
            parts = [np.where(found.used, arms, np.nan)]
            if self.locations is not None:
                z = (found.x - self.locations[:, :1]) / self.locations[:, 1:]
                balance = np.concatenate([A * z, (1 - A) * z, w1 * z, w0 * z])
                parts.append(np.where(found.used, balance, np.nan))
        return tuple(parts)

    def _weights(self, found: Evaluated) -> tuple[FloatArray, FloatArray]:
        """A w₁/W and (1 − A)w₀/W."""
        if self.records.propensity is None:
            return np.zeros_like(found.e), np.zeros_like(found.e)
        A, w = found.treated, found.weights
        t, c = (np.minimum(each / self.largest, 1.0) for each in (w.treated, w.control))
        return A * t, (1 - A) * c


@dataclass(frozen=True, slots=True)
class Centres:
    """G, S₁, S₀ over n, and r, r₁, r₀: what influences are relative to."""

    G: float
    S1: float
    S0: float
    r: float
    r1: float
    r0: float


@dataclass(frozen=True, slots=True, eq=False)
class Influence:
    """ψ of records and its derivatives, about released centres."""

    records: AdjustedRecords
    centres: Centres

    def of(self, block: Block) -> tuple[FloatArray, FloatArray]:
        """ψ (rows,) and R∂ψ (d, rows); NaN for what is out of use."""
        found, at = self.records.of(block), self.centres
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            A, w = found.treated, found.weights
            on = 0.0 if self.records.propensity is None else 1.0
            delta = found.m[0] - found.m[1] - at.r
            r1, r0 = found.y - found.m[0] - at.r1, found.y - found.m[1] - at.r0
            t, c = on * A / at.S1, on * (1 - A) / at.S0
            psi = w.target * delta / at.G + t * w.treated * r1 - c * w.control * r0
            inside = found.raw == found.e
            k = w.target_slope * delta / at.G + t * w.treated_slope * r1 - c * w.control_slope * r0
            c1 = w.target / at.G - t * w.treated
            c0 = c * w.control - w.target / at.G
            rows = [
                *self._propensity(np.where(inside, k, 0.0), found.x),
                *self._outcome(c1 * found.slopes[0], c0 * found.slopes[1], found.x),
            ]
            derivatives = np.stack(rows) if rows else np.zeros((0, block.rows))
        return np.where(found.used, psi, np.nan), np.where(found.used, derivatives, np.nan)

    def residuals(self, block: Block) -> FloatArray:
        """|y − m| (rows,) of the record's own arm, about its centre."""
        found, at = self.records.of(block), self.centres
        m = np.where(found.treated > 0, found.m[0] + at.r1, found.m[1] + at.r0)
        return np.abs(found.y - m)

    def _propensity(self, k: FloatArray, x: FloatArray) -> list[FloatArray]:
        nuisance = self.records.propensity
        return [] if nuisance is None else nuisance.rooted([k, *(k * each for each in x)])

    def _outcome(self, c1: FloatArray, c0: FloatArray, x: FloatArray) -> list[FloatArray]:
        nuisance, both = self.records.outcome, c1 + c0
        return [] if nuisance is None else nuisance.rooted([both, c1, *(both * each for each in x)])


@dataclass(frozen=True, slots=True, eq=False)
class InfluenceLengthsMap:
    """(rows,) the positions of |ψ| and of ‖R∂ψ‖ on public grids; with weights that of |y − m|
    too."""

    influence: Influence
    effects: LengthGrid
    derivatives: LengthGrid

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        psi, derivatives = self.influence.of(block)
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            lengths = np.sqrt(sum((each * each for each in derivatives), np.zeros(len(psi))))
            lost = ~np.isfinite(psi) | ~np.isfinite(lengths)
            codes = [self.effects.codes(np.abs(psi)), self.derivatives.codes(lengths)]
            if self.influence.records.propensity is not None:
                codes.append(self.effects.codes(self.influence.residuals(block)))
        return tuple(np.where(lost, -1.0, each) for each in codes)


@dataclass(frozen=True, slots=True, eq=False)
class EffectMap:
    """(rows,) ψ/C, which the sum cuts to [−1, 1], and R∂ψ (d, rows)."""

    influence: Influence
    cut: float

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        psi, derivatives = self.influence.of(block)
        lost = ~np.isfinite(psi) | ~np.isfinite(derivatives).all(axis=0)
        return (
            np.where(lost, np.nan, psi / self.cut),
            np.where(lost, 0.0, derivatives),
        )
