# SPDX-License-Identifier: Apache-2.0
"""Many small fits at once: one estimating equation in each of k blocks of records, without noise.

With x_i the rows of a design, y_i the responses, over the records in use of one block:

    huber            Σ ψ_c(r_i/s) x_i = 0,  r_i = y_i − x_iᵀβ,  s = median|r_i|/.6745
    binomial, …      Σ [(y_i − μ_i)μ′_i/V_i + φh_iμ″_i/(2μ′_i)] x_i = 0,  μ_i = μ(x_iᵀβ), h_i the
                     leverages of the weights μ′²/V: maximum likelihood; without the term in h_i
                     where not bias-corrected
    location_scale   Σ ψ_c(u_i) = 0,  Σ ψ_c²(u_i) = κ n,  u_i = (y_i − μ)/σ: Huber's Proposal 2

Every block takes the same number of steps, whatever is in it. A block has no estimate (NaN) where
it has no more records in use than coefficients, where its information is singular, or where the
last step was not short. A block's estimate is a function of its own records: blocks fitted together
or apart agree up to the rounding of floats.

Bias correction. The term in h_i takes the bias of order 1/b off a generalised linear model's
estimate, and keeps it finite where a block is separated (Firth 1993; Kosmidis & Firth 2009).
Proposal 2 is corrected by the jackknife: with a block cut into g groups and θ₍₋ⱼ₎ fitted without
group j, gθ̂ − (g − 1)·mean θ₍₋ⱼ₎ has no bias of order 1/b left (Quenouille 1956). Huber's
regression has none under symmetric errors, and its scale, a median, has no such expansion: it is
not corrected.

Source: Smith (2011) for the use; Huber & Ronchetti (2009), ch. 6 and 7 for the equations.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.columns import BlockModel
from reticent_server.domain.steps import FloatArray
from reticent_server.numerics.families import Binomial, Family, Gamma, Poisson
from reticent_server.numerics.psi import Huber

BoolArray = NDArray[np.bool_]

GROUPS = 4  # g of the jackknife: more fits for a correction of less variance; accuracy only
# reweighting, linear convergence, needs more than Newton's; a block that has not settled has no
# estimate
STEPS = {"huber": 40, "location_scale": 60, "binomial": 25, "poisson": 25, "gamma": 25}
# steps of each jackknife fit, which starts at the whole block's solution; too few lose the block's
# estimate, not its privacy
AGAIN = 25
# relative eigenvalue of the scaled information below which the solution's digits are rounding
_SINGULAR = 1e-11
# last step, in residual scales or in η: far below a block's sampling error; a longer one is no
# estimate
_SHORT = 1e-3
# of a step in the predictor: e³ in a log link's mean; larger ones overshoot from a poor start
_LONGEST_MOVE = 3.0
_MAD_TO_SD = 0.6744897501960817  # Φ⁻¹(3/4): the median of |z| under the normal law
_FAMILIES: dict[str, Family] = {"binomial": Binomial(), "poisson": Poisson(), "gamma": Gamma()}


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """X (k, b, p), y (k, b), used (k, b) 0 or 1; X and y are 0 where a record is not in use."""

    X: FloatArray
    y: FloatArray
    used: FloatArray

    @property
    def sizes(self) -> FloatArray:
        """(k,) records in use, 1 at least."""
        return np.asarray(np.maximum(self.used.sum(axis=1), 1.0))

    def predictor(self, beta: FloatArray) -> FloatArray:
        """(k, b) x_iᵀβ."""
        return np.asarray(np.matmul(self.X, beta[:, :, None])[:, :, 0])


@dataclass(frozen=True, slots=True, eq=False)
class Information:
    """Σ w x xᵀ of each block, as vectors (k, p, p) and values (k, p); sound: where it is not
    singular."""

    blocks: Blocks
    weighted: FloatArray
    vectors: FloatArray
    values: FloatArray
    sound: BoolArray

    @classmethod
    def of(cls, blocks: Blocks, weights: FloatArray) -> "Information":
        """weights (k, b), at least 0. The values are 1 where the matrix is singular or not
        finite."""
        weighted = blocks.X * weights[:, :, None]
        gram = np.matmul(weighted.transpose(0, 2, 1), blocks.X)
        size = np.trace(gram, axis1=1, axis2=2)
        gram = gram / size[:, None, None]
        finite = np.isfinite(gram).all(axis=(1, 2))
        values, vectors = np.linalg.eigh(
            np.where(finite[:, None, None], gram, np.eye(gram.shape[1]))
        )
        sound = finite & (values[:, 0] > _SINGULAR)
        values = np.where(sound[:, None], values * size[:, None], 1.0)
        return cls(blocks, weighted, vectors, values, sound)

    def solve(self, residuals: FloatArray) -> FloatArray:
        """(k, p) (Σ w x xᵀ)⁻¹ Σ w r x; 0 where the matrix is singular."""
        right = np.matmul(residuals[:, None, :], self.weighted)
        along = np.where(self.sound[:, None], np.matmul(right, self.vectors)[:, 0], 0.0)
        return np.asarray(np.matmul(self.vectors, (along / self.values)[:, :, None])[:, :, 0])

    @property
    def leverages(self) -> FloatArray:
        """(k, b) x_iᵀ(Σ w x xᵀ)⁻¹x_i; 0 where the matrix is singular."""
        along = np.matmul(self.blocks.X, self.vectors)
        leverages = np.einsum("kbp,kbp,kp->kb", along, along, 1 / self.values)
        return np.asarray(np.where(self.sound[:, None], leverages, 0.0))


def block_estimates(model: BlockModel, blocks: Blocks) -> FloatArray:
    """(k, m) estimates, NaN where a block has none. They are bias-corrected where the model
    asks."""
    with np.errstate(all="ignore"):
        scaled, scales = _scaled(model, blocks)
        estimates = _fit(model, scaled, STEPS[model.equation], None)
        if model.equation == "location_scale" and model.bias_corrected:
            estimates = _jackknifed(model, scaled, estimates)
        return np.asarray(estimates / scales)


def _scaled(model: BlockModel, blocks: Blocks) -> tuple[Blocks, FloatArray]:
    """The blocks with columns of mean square 1, and what their coefficients are to be divided
    by."""
    if model.equation == "location_scale":
        return blocks, np.ones((len(blocks.y), 2))
    squares = np.einsum("kbp,kbp->kp", blocks.X, blocks.X) / blocks.sizes[:, None]
    scales = np.where(squares > 0, np.sqrt(squares), 1.0)
    return replace(blocks, X=blocks.X / scales[:, None, :]), scales


def _jackknifed(model: BlockModel, blocks: Blocks, whole: FloatArray) -> FloatArray:
    """gθ̂ − (g − 1)·mean θ₍₋ⱼ₎; θ̂ itself where a part of the block has no estimate."""
    group = np.arange(blocks.y.shape[1]) % GROUPS
    start, total = np.nan_to_num(whole), np.zeros_like(whole)
    for j in range(GROUPS):
        kept = (group != j)[None, :]
        used = blocks.used * kept
        part = Blocks(blocks.X * kept[:, :, None], blocks.y * kept, used)
        total += _fit(model, part, AGAIN, start)
    corrected = GROUPS * whole - (GROUPS - 1) * total / GROUPS
    sound = np.isfinite(corrected).all(axis=1, keepdims=True) & (corrected[:, 1:] > 0)
    return np.asarray(np.where(sound, corrected, whole))


def _fit(model: BlockModel, blocks: Blocks, steps: int, start: FloatArray | None) -> FloatArray:
    match model.equation:
        case "huber":
            estimates, sound = _huber(blocks, model.tuning, steps)
        case "location_scale":
            estimates, sound = _proposal_2(blocks, model.tuning, steps, start)
        case family:
            estimates, sound = _likelihood(blocks, _FAMILIES[family], model, steps)
    enough = blocks.used.sum(axis=1) > estimates.shape[1]
    sound &= enough & np.isfinite(estimates).all(axis=1)
    return np.where(sound[:, None], estimates, np.nan)


def _huber(blocks: Blocks, c: float, steps: int) -> tuple[FloatArray, BoolArray]:
    """Reweighted least squares from least squares; the scale is taken anew in each step."""
    first = Information.of(blocks, blocks.used)
    beta, sound = first.solve(blocks.y), first.sound
    least = 1e-12 * np.abs(blocks.y).max(axis=1) + 1e-300
    for _ in range(steps):
        r = blocks.y - blocks.predictor(beta)
        s = np.maximum(masked_median(np.abs(r), blocks.used) / _MAD_TO_SD, least)
        w = blocks.used * np.minimum(1.0, c * s[:, None] / np.maximum(np.abs(r), 1e-300))
        information = Information.of(blocks, w)
        move = information.solve(r)
        beta, sound = beta + move, sound & information.sound
    return beta, sound & (_length(blocks, move) <= _SHORT * s)


def _likelihood(
    blocks: Blocks, family: Family, model: BlockModel, steps: int
) -> tuple[FloatArray, BoolArray]:
    """Fisher scoring from least squares on a transformed response, each step of limited length."""
    limits = family.predictor_limits(model.largest_response)
    beta = _first(blocks, family)
    sound = np.ones(len(beta), dtype=np.bool_)
    for _ in range(steps):
        eta = np.clip(blocks.predictor(beta), *limits)
        gain = family.gain(eta)
        information = Information.of(blocks, blocks.used * gain**2)
        r = family.residual(blocks.y, eta) / gain
        if model.bias_corrected:
            r += (
                0.5
                * _dispersion(blocks, family, eta)[:, None]
                * (_bend(family, eta) * information.leverages)
            )
        move = information.solve(r)
        farthest = np.abs(blocks.predictor(move)).max(axis=1)
        move *= np.minimum(1.0, _LONGEST_MOVE / np.maximum(farthest, 1e-300))[:, None]
        beta, sound = beta + move, sound & information.sound
    eta = blocks.predictor(beta)
    inside = ((eta == np.clip(eta, *limits)) | (blocks.used == 0)).all(axis=1)
    return beta, sound & inside & (_length(blocks, move) <= _SHORT)


def _bend(family: Family, eta: FloatArray) -> FloatArray:
    """μ″/μ′ at η."""
    if family.name == "binomial":
        return np.asarray(1 - 2 * family.mean(eta))
    return np.ones_like(eta)


def _dispersion(blocks: Blocks, family: Family, eta: FloatArray) -> FloatArray:
    """(k,) φ: of the Gamma family by its Pearson residuals, else 1."""
    if family.name != "gamma":
        return np.ones(len(blocks.y))
    freedom = np.maximum(blocks.used.sum(axis=1) - blocks.X.shape[2], 1.0)
    return np.asarray((blocks.used * family.residual(blocks.y, eta) ** 2).sum(axis=1) / freedom)


def _first(blocks: Blocks, family: Family) -> FloatArray:
    if family.name == "binomial":
        target = 2 * (2 * blocks.y - 1)
    else:
        means = (blocks.y.sum(axis=1) / blocks.sizes)[:, None]
        target = np.log(np.maximum(blocks.y, np.maximum(0.1 * means, 1e-300)))
    return Information.of(blocks, blocks.used).solve(target)


def _proposal_2(
    blocks: Blocks, c: float, steps: int, start: FloatArray | None
) -> tuple[FloatArray, BoolArray]:
    """Fixed-point steps in turn for location and scale, from median and median deviation."""
    y, used, n = blocks.y, blocks.used, blocks.sizes
    family = Huber(c)
    if start is None:
        mu = masked_median(y, used)
        s = masked_median(np.abs(y - mu[:, None]), used) / _MAD_TO_SD
    else:
        mu, s = start.T
    spread = np.sqrt((used * (y - mu[:, None]) ** 2).sum(axis=1) / n)
    s = np.maximum(s, 1e-3 * spread + 1e-300)
    for _ in range(steps):
        u = (y - mu[:, None]) / s[:, None]
        psi = used * family.psi(u)
        slope = np.maximum((used * (np.abs(u) < c)).sum(axis=1) / n, 0.1)
        move = psi.sum(axis=1) / n / slope
        ratio = np.sqrt((psi**2).sum(axis=1) / n / family.mean_square)
        ratio = np.clip(ratio ** (1 / np.maximum(slope, 0.5)), 0.5, 2.0)
        mu, s = mu + s * move, s * ratio
    short = (np.abs(move) <= _SHORT) & (np.abs(ratio - 1) <= _SHORT)
    return np.column_stack([mu, s]), short & (s > 1e-6 * spread)


def masked_median(values: FloatArray, used: FloatArray) -> FloatArray:
    """(k,) medians of the values (k, b) in use; 0 without any."""
    ordered = np.sort(np.where(used > 0, values, np.inf), axis=1)
    count = used.sum(axis=1).astype(np.int64)
    ends = np.stack([np.maximum(count - 1, 0) // 2, np.maximum(count, 1) // 2], axis=1)
    ends = np.minimum(ends, values.shape[1] - 1)
    middle = np.take_along_axis(ordered, ends, axis=1).mean(axis=1)
    return np.asarray(np.where(count > 0, middle, 0.0))


def _length(blocks: Blocks, move: FloatArray) -> FloatArray:
    """(k,) root mean square of x_iᵀmove."""
    squares = (blocks.used * blocks.predictor(move) ** 2).sum(axis=1)
    return np.asarray(np.sqrt(squares / blocks.sizes))
