"""What one record contributes to a generalised linear model: of the record and public values only.

    u = W x̃,  η = clip(x̃ᵀθ),  v = m(η) u,  w = min(1, R_c²/‖v_c‖²[, cap/m²])
    score    w v q            ‖·‖ ≤ R K     its Gram sum is the meat
             w v q + a θ̂      ‖·‖ ≤ C       its sum is the gradient, but for n a θ̂ (centre)
    root     v √(w h)         ‖·‖ ≤ R √H    its Gram sum is the Jacobian
    square   ψ_k²(z)          ≤ k²          its mean gives the next scale
    χ        w(ψ_k²(z) − κ)   |·| ≤ sup|χ|  in the Gamma family's last step (dispersion)

The cap (a public number, only where there are rare dummies and m varies) bounds what those add:
w m² b⁻² ≤ cap b⁻². η comes from an exact product (estimators.newton.maps) and everything else is
elementwise on contiguous arrays, so that a record's values are bit-identical in every block.
"""

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import Block, Contribution, FloatArray, Scaled, multiplied
from reticent_server.estimators.glm.dispersion import ChiScore
from reticent_server.estimators.glm.score import QuasiScore
from reticent_server.estimators.newton.coding import Coding
from reticent_server.estimators.newton.maps import coordinates, on_lattice, standardised
from reticent_server.numerics.evaluate import evaluate_term, in_use
from reticent_server.numerics.lengths import squared_lengths


@dataclass(frozen=True, slots=True, eq=False)
class GlmPoint:
    """A public state of the fit: θ (q,), W_c (q_c, q_c), the score (with its scale), the cap."""

    theta: FloatArray
    transform: FloatArray
    score: QuasiScore
    cap: float = inf


@dataclass(frozen=True, slots=True, eq=False)
class GlmScoreMap:
    """Gives (score, root) or, with `meat`, (score, root, score): of size q; the last two as v, weights.

    The first score is moved by `shift` (q,), for records that are not in use as well. chi: with it the
    meat's rows are (score, wχ), and wχ (1, rows) is appended. count: appends a code 0 for each record
    in use.
    """

    coding: Coding
    point: GlmPoint
    shift: FloatArray
    meat: bool = False
    chi: ChiScore | None = None
    count: bool = False

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        used = _used(self.coding, block)
        score = self.point.score
        with np.errstate(all="ignore"):
            x = standardised(self.coding, block)
            eta = predictor(self.point, self.coding, x)
            v = coordinates(self.coding, self.point.transform, x, block.scratch)
            if score.varies:
                v *= score.leverage(eta)
            w = weights(self.coding, self.point, v, eta)
            if used is not None:
                w *= used
            y = response(self.coding, block)
            q, h = score.evaluate(y, eta)
            root = Scaled(v, np.sqrt(w * h))
            scores = Scaled(v, w * q)
            moved = self._moved(scores, block)
            parts: tuple[Contribution, ...] = (moved, root, scores) if self.meat else (moved, root)
            if self.chi is not None:
                squares = score.residual_square(y, eta, self.chi.k)
                chi = (w * (squares - self.chi.kappa))[None, :]
                parts = (moved, root, np.vstack([multiplied(scores), chi]), chi)
        return (*parts, _count_codes(block, used)) if self.count else parts

    def _moved(self, scores: Scaled, block: Block) -> FloatArray:
        """(q, rows) scores moved by the shift."""
        out = block.scratch.array("moved", *scores.vectors.shape)
        np.multiply(scores.vectors, scores.weights, out=out)
        out += self.shift[:, None]
        return out


@dataclass(frozen=True, slots=True, eq=False)
class SquareMap:
    """Gives ψ_k²(z) (1, rows) of the records in use, 0 for the others."""

    coding: Coding
    point: GlmPoint
    k: float

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        with np.errstate(all="ignore"):
            x = standardised(self.coding, block)
            eta = predictor(self.point, self.coding, x)
            squares = self.point.score.residual_square(response(self.coding, block), eta, self.k)
        used = _used(self.coding, block)
        return ((np.where(used, squares, 0.0) if used is not None else squares)[None, :],)


def predictor(point: GlmPoint, coding: Coding, x: FloatArray) -> FloatArray:
    """(rows,) η, clipped to the public range."""
    eta = on_lattice(point.theta, coding.size) @ x
    return np.clip(eta, *point.score.limits)


def response(coding: Coding, block: Block) -> FloatArray:
    """(rows,) y, a contiguous array in the units of the data."""
    return np.ascontiguousarray(evaluate_term(coding.response, block))


def weights(coding: Coding, point: GlmPoint, v: FloatArray, eta: FloatArray) -> FloatArray:
    """(rows,) w from the white coordinates v (q, rows), added in a fixed order."""
    limit = np.full(v.shape[1], coding.white_radius_squared or 1.0)
    norms = squared_lengths(v[: coding.white_size], np.empty(v.shape[1]))
    w = limit / np.maximum(norms, limit)
    if point.cap < inf:
        m = point.score.leverage(eta)
        w = np.minimum(w, point.cap / np.maximum(m * m, point.cap))
    return np.asarray(w)


def _used(coding: Coding, block: Block) -> NDArray[np.bool_] | None:
    return in_use(coding.design, block) if coding.design.masked else None


def _count_codes(block: Block, used: NDArray[np.bool_] | None) -> FloatArray:
    return np.zeros(block.rows) if used is None else np.where(used, 0.0, -1.0)
