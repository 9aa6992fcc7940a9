# SPDX-License-Identifier: Apache-2.0
"""From released sums to the jump with its interval: post-processing (discontinuity.plan).

The lines are those of the first look, moved so that they are the jump apart: of y cut to a range,
to draw and to see slopes by. They have no intervals; the jump has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, sqrt
from typing import TYPE_CHECKING

import numpy as np

from reticent_server.domain.steps import FloatArray, Released
from reticent_server.fitting import trust
from reticent_server.fitting.report import EVEN_WEIGHTS, intervals, p_values, roots
from reticent_server.fitting.results import Cut, Direction, RegressionResult, Weighting
from reticent_server.fitting.row_tail import RowCut
from reticent_server.fitting.trust.thresholds import RESOLVED
from reticent_server.kinds.discontinuity.local_fit import (
    ABOVE,
    BELOW,
    SideGramMap,
    Window,
    basis,
)
from reticent_server.kinds.discontinuity.tails import ResidualTails
from reticent_server.numerics.short_covariance import shortened

if TYPE_CHECKING:
    from reticent_server.kinds.discontinuity.plan import JumpPlan

_LEAST = 1e-9  # of a record
_JUMP = 1  # place of the jump among the coefficients


@dataclass(frozen=True, slots=True, eq=False)
class FirstLook:
    """What the first sums say. gram: (2, k + 1, k + 1), by side, as the others; lines: (2, k + 1)
    of y less the centre, on q. noise: standard deviations of G's places (d,), as `Basis.units` has
    them, and of T. known: whether both sides' G is clear of its noise.
    """

    order: int
    gram: FloatArray
    lines: FloatArray
    noise: tuple[FloatArray, float]
    reach: float
    count: float
    known: bool

    @classmethod
    def of(
        cls, values: FloatArray, rows: SideGramMap, noise: tuple[FloatArray, float]
    ) -> "FirstLook":
        """From the released Gram matrix of a SideGramMap."""
        k, reach = rows.window.order, rows.window.reach
        by_side = np.stack([values[side::2, side::2] for side in (BELOW, ABOVE)])
        G, T = by_side[:, :-1, :-1], by_side[:, :-1, -1] / rows.weight
        count = 2 * max(float(G[:, 0, 0].sum()), 1.0)
        values, vectors = np.linalg.eigh(G)
        least = _noise_along(vectors, k, noise[0])
        known = bool(np.all(trust.clear(values, least)))
        floored = np.maximum(values, RESOLVED.value * np.maximum(least, _LEAST))
        G = np.einsum("sjk,sk,slk->sjl", vectors, floored, vectors)
        lines = reach * np.linalg.solve(G, T[..., None])[..., 0]
        return cls(k, G, lines, noise, reach, count, known)

    @classmethod
    def expected(
        cls, order: int, weights: Sequence[float], noise: tuple[FloatArray, float], reach: float
    ) -> "FirstLook":
        """Where records are spread evenly, with Σa = `weights`, and the lines are flat."""
        vectors = np.broadcast_to(np.eye(order + 1), (2, order + 1, order + 1))
        G = np.array(weights)[:, None, None] * vectors
        values = np.array(weights)[:, None]
        known = bool(np.all(trust.clear(values, _noise_along(vectors, order, noise[0]))))
        flat = np.zeros((2, order + 1))
        return cls(order, G, flat, noise, reach, 2 * sum(weights), known)

    @property
    def weights(self) -> FloatArray:
        """w (2, k + 1)."""
        q = basis(self.order).at_cutoff
        return np.asarray(
            np.linalg.solve(self.gram, np.broadcast_to(q, self.lines.shape)[..., None])
        )[..., 0]

    @property
    def jump(self) -> float:
        """The lines' difference at the cut-off."""
        return float((self.lines[ABOVE] - self.lines[BELOW]) @ basis(self.order).at_cutoff)

    @property
    def _squares(self) -> float:
        """Σℓ² of both sides, as of evenly spread records."""
        b = basis(self.order)
        return b.squeeze * float(np.sum(self.weights @ b.at_cutoff))

    @property
    def sampling(self) -> float:
        """The jump's standard error for residuals of deviation 1."""
        return sqrt(self._squares)

    @property
    def typical(self) -> float:
        """The root mean square of ℓ."""
        return sqrt(self._squares / self.count)

    @property
    def longest(self) -> float:
        """The largest |ℓ|, at the cut-off."""
        return float(np.max(self.weights @ basis(self.order).at_cutoff))

    def leak(self, added: float) -> float:
        """The standard deviation of the product of the first look's errors, G's and the lines'.
        added: the jump that the last step has added.
        """
        b, w, total = basis(self.order), self.weights, 0.0
        for G, weight, line in zip(self.gram, w, self.lines, strict=True):
            C = np.einsum("l,ljk->ljk", self.noise[0], b.units)
            bent = np.einsum("ljk,k->lj", C, line)
            root = np.linalg.inv(G)
            moved = added * (root @ b.at_cutoff) / (b.at_cutoff @ root @ b.at_cutoff)
            noise = (self.reach * self.noise[1]) ** 2 * np.eye(len(G)) + bent.T @ bent
            S = root @ noise @ root + np.outer(moved, moved)
            at = np.einsum("ljk,k->lj", C, weight)
            total += float(np.einsum("lj,jk,lk->", at, S, at))
            total += float(np.einsum("lj,jk,lk->", at, root, bent)) ** 2
        return sqrt(total)

    def errors(self, residual: float) -> FloatArray:
        """(2, k + 1, k + 1): of the lines, for residuals of that deviation."""
        b = basis(self.order)
        found = []
        for G, line in zip(self.gram, self.lines, strict=True):
            bent = np.einsum("l,ljk,k->lj", self.noise[0], b.units, line)
            noise = (self.reach * self.noise[1]) ** 2 * np.eye(len(G)) + bent.T @ bent
            root = np.linalg.inv(G)
            found.append(root @ (noise + residual**2 * G[0, 0] * b.squares) @ root)
        return np.array(found)


def _noise_along(vectors: FloatArray, order: int, sds: FloatArray) -> FloatArray:
    """(2, k + 1) standard deviations of vᵀGv, v the columns of `vectors` by side."""
    along = np.einsum("sjr,ljk,skr->lsr", vectors, basis(order).units, vectors)
    return np.asarray(np.sqrt(np.einsum("l,lsr->sr", sds**2, along**2)))


@dataclass(frozen=True, slots=True, eq=False)
class JumpSums:
    """The last step's release: sums of ψ/C and of its square times `square`."""

    powers: Released
    square: float
    cut: RowCut
    tails: ResidualTails

    @property
    def added(self) -> float:
        """What the first look's jump lacks."""
        return float(self.cut.length * self.powers.values[0])

    @property
    def noise(self) -> float:
        """The standard deviation of the noise of `added`."""
        return float(self.cut.length * self.powers.sd)

    @property
    def clear(self) -> bool:
        """Whether the squares are more than noise."""
        return bool(trust.clear(float(self.powers.values[1]), self.powers.sd))

    @property
    def sampling(self) -> float:
        """A standard error; at least as large as its noise."""
        squares = max(float(self.powers.values[1]), self.powers.sd) / self.square
        return float(self.cut.length * sqrt(squares))

    @property
    def allowance(self) -> float:
        """For what the cut takes."""
        return self.cut.excess


def jump_result(
    plan: "JumpPlan", look: FirstLook, sums: JumpSums, notes: Sequence[str]
) -> RegressionResult:
    """What a reply says. notes: further warnings."""
    leak = look.leak(sums.added)
    privacy, sampling = hypot(sums.noise, leak), hypot(sums.sampling, sums.allowance)
    verdict = trust.jump(
        known=look.known,
        spread=sums.clear,
        tail=trust.jump_tail(
            sums.tails.upper, sums.tails.seen, told=sums.cut.alpha > 0, bounded=plan.bounded
        ),
        allowance=sums.allowance,
        sampling=sums.sampling,
        privacy=privacy,
    )
    residual = sums.sampling / look.sampling
    M = _to_terms(plan.window)
    errors = hypot(privacy, sampling)
    lines, noise, covariance = _moved(look, residual, look.jump + sums.added, privacy, errors)
    beta = M @ lines + np.append(plan.window.centre, np.zeros(len(M) - 1))
    noise, covariance = M @ noise @ M.T, M @ covariance @ M.T
    se, p = roots(covariance), len(beta)
    ok = np.array([i == _JUMP and verdict.intervals for i in range(p)])
    return RegressionResult(
        terms=list(plan.terms),
        coefficients=beta.tolist(),
        standard_errors=se.tolist(),
        covariance=[[*row] for row in shortened(covariance)],
        confidence_level=plan.level,
        confidence_intervals=intervals(beta, se, plan.level, ok),
        p_values=p_values(beta, se, ok),
        privacy_standard_errors=roots(noise).tolist(),
        estimable=ok.tolist(),
        directions=[
            Direction(vector=row.tolist(), resolved=bool(ok[i])) for i, row in enumerate(np.eye(p))
        ],
        scale=residual,
        tuning=None,
        steps=3,
        shares=plan.spent,
        estimand=_ESTIMAND[plan.window.order].format(
            x=plan.running.name, c=plan.window.kernel.centre, h=plan.window.kernel.width
        ),
        n=plan.facts.n,
        warnings=[*verdict.sentences, *notes],
        sum_of_weights=look.count / 2,
        cut=Cut(
            records_beyond=sums.cut.beyond,
            allowances=[sums.allowance if i == _JUMP else 0.0 for i in range(p)],
            tail_index=sums.cut.alpha if sums.cut.alpha > 0 else None,
        ),
        weighting=Weighting(**EVEN_WEIGHTS),
    )


_ESTIMAND = {
    1: (
        "The jump at the cut-off of least-squares lines on its two sides, scores multiplied by "
        "max(0, 1 - |{x} - {c:g}|/{h:g}); the lines themselves are a first look, without intervals"
    ),
    2: (
        "The jump at the cut-off of least-squares parabolas on its two sides, scores multiplied by "
        "max(0, 1 - |{x} - {c:g}|/{h:g}); the parabolas themselves are a first look, without "
        "intervals"
    ),
}


def _moved(
    look: FirstLook, residual: float, jump: float, privacy: float, error: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The lines (2(k + 1),), moved so that they are `jump` apart (a projection by their
    covariance), and covariances of noise and of all. residual: a standard deviation. privacy,
    error: standard errors of the jump.
    """
    below, above = look.errors(residual)
    S = _blocks(below, above)
    P = _blocks(*look.errors(0.0))
    q = basis(look.order).at_cutoff
    d = np.concatenate([-q, q])
    K = S @ d / float(d @ S @ d)
    A = np.eye(len(d)) - np.outer(K, d)
    lines = look.lines.ravel()
    noise, every = (A @ C @ A.T + sd**2 * np.outer(K, K) for C, sd in ((P, privacy), (S, error)))
    return lines + K * (jump - float(d @ lines)), noise, every


def _blocks(below: FloatArray, above: FloatArray) -> FloatArray:
    empty = np.zeros_like(below)
    return np.block([[below, empty], [empty, above]])


def _to_terms(window: Window) -> FloatArray:
    """(p, 2(k + 1)) from the lines' coefficients on q to those of the terms, but for the centre:
    intercept at x = 0, jump, slope, its change, and so on.
    """
    k, b = window.order, basis(window.order)
    c, h = window.kernel.centre, window.kernel.width
    powers = np.arange(k + 1)
    # coefficients of 1, x − c, (x − c)² …: v is (c − x)/h below the cut-off, (x − c)/h above it
    below, above = (b.powers.T * (sign / h) ** powers[:, None] for sign in (-1.0, 1.0))
    rows = np.stack([np.hstack([below, 0 * below]), np.hstack([-below, above])], axis=1)
    M = rows.reshape(2 * (k + 1), -1)
    M[0] -= c * M[2]
    return M
