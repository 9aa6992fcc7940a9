"""A parametric bootstrap of the whole mechanism, where its noise is too large for normal theory.

Where the public noise ratio η exceeds .038, the noise bends the Newton steps and the plug-in standard
errors are too small. The mechanism is run again on a public synthetic table drawn from the released
fit (x̃ normal with second moment M, ỹ = x̃ᵀθ ± s|N(0, 1)|), its sums scaled up to n records and given
noise of the planned size. Errors come in pairs e, −e at one x̃, so that Σ w x̃ ψ(e) = 0 at θ whatever the
weights w: the noise moves the weights, and a table much smaller than n would take that for an error of
the fit. For each run the studentised error

    |θ_b − θ + N(0, C_b)| / se_b,   C_b its sampling part

is recorded, and the Wald statistic of all slopes. Standard errors are multiplied by the largest of 1,
q/1.96 and √(Q/χ²), q the first's 95 % quantile over runs and coefficients, Q the second's and χ² that of
its normal theory: the noise makes the covariance's shape look surer than its size. Post-processing of released values:
costs nothing, and draws from a public generator.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import chdtri

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.design import ColumnValue, Design, Term
from reticent_server.domain.steps import (
    Block,
    CountSum,
    FloatArray,
    GramSum,
    Released,
    VectorSum,
    multiplied,
)
from reticent_server.estimators.newton.coding import Coding
from reticent_server.estimators.newton.recipe import Fitting, Newton, StandardFit
from reticent_server.estimators.standardise import Location
from reticent_server.numerics.matrices import eigen
from reticent_server.numerics.public_random import PublicGenerator

NOISY = 0.038
_RUNS, _PAIRS = 100, 500
_NORMAL_95 = 1.959963984540054


@dataclass(frozen=True, slots=True, eq=False)
class SyntheticTable:
    """A public table of the released fit: one block, its coding, and θ (q,), its noise-free fit."""

    block: Block
    coding: Coding
    target: FloatArray


def widening(newton: Newton, fitted: StandardFit, rng: PublicGenerator) -> float:
    """The factor ≥ 1 for standard errors; 1 without work where η ≤ .038."""
    if newton.settings.eta <= NOISY:
        return 1.0
    table = synthetic_table(newton, fitted, rng)
    add_noise = NoisySums(newton.sizes.n / table.block.rows, rng)
    again = replace(newton, coding=table.coding)
    runs = [_studentised(again, table, add_noise) for _ in range(_RUNS)]
    single = float(np.quantile(np.concatenate([errors for errors, _ in runs]), 0.95)) / _NORMAL_95
    joint = float(np.quantile([wald for _, wald in runs], 0.95))
    return max(1.0, single, float(np.sqrt(joint / chdtri(_slopes(newton), 0.05))))


def _slopes(newton: Newton) -> int:
    return newton.sizes.size - int(newton.sizes.intercept)


def _studentised(
    newton: Newton, table: SyntheticTable, add_noise: "NoisySums"
) -> tuple[FloatArray, float]:
    """(q,) |θ_b − θ* + sampling error| / se_b of one run of the mechanism, and the slopes' Wald."""
    again = run_publicly(newton.fit(), table.block, add_noise)
    values, vectors = eigen(again.sampling)
    normal = add_noise.rng.standard_normal(len(values))
    sampled = vectors @ (np.sqrt(np.maximum(values, 0)) * normal)
    covariance, error = again.sampling + again.privacy, again.theta - table.target + sampled
    se = np.sqrt(np.maximum(np.diag(covariance), np.finfo(float).tiny))
    return np.asarray(np.abs(error) / se), _wald(covariance, error, len(error) - _slopes(newton))


def _wald(covariance: FloatArray, error: FloatArray, head: int) -> float:
    """eᵀC⁻¹e of the slopes, 0 where the numbers leave the floats."""
    solved = np.linalg.lstsq(covariance[head:, head:], error[head:], rcond=None)[0]
    statistic = float(error[head:] @ solved)
    return statistic if np.isfinite(statistic) else 0.0


def run_publicly(
    recipe: Fitting, block: Block, release: Callable[[Any, FloatArray], Released]
) -> StandardFit:
    """Drives a recipe on a public block."""
    try:
        step = next(recipe)
        while True:
            contributions = map(multiplied, step.map_fn(block))
            released = tuple(
                release(part, v) for part, v in zip(step.parts, contributions, strict=True)
            )
            step = recipe.send(released)
    except StopIteration as finished:
        result: StandardFit = finished.value
        return result


@dataclass(frozen=True, slots=True, eq=False)
class NoisySums:
    """Sums of public contributions times `repeat`, with normal noise of the planned size."""

    repeat: float
    rng: PublicGenerator

    def __call__(self, part: Any, v: FloatArray) -> Released:
        unit = part.unit_rows / np.sqrt(2 * part.rho / RHO_UNITS)
        match part:
            case VectorSum(size=size, clip=clip):
                sd = 2 * clip * unit
                noise = self.rng.standard_normal(size)
                return Released(self.repeat * v.sum(axis=1) + sd * noise, sd)
            case GramSum(size=size, clip=clip):
                sd = np.sqrt(2) * clip**2 * unit
                noise = self.rng.standard_normal((size, size))
                return Released(self.repeat * (v @ v.T) + sd * (noise + noise.T) / 2, sd)
            case CountSum(bins=bins):
                sd = np.sqrt(2) * unit
                counts = np.bincount(v[v >= 0].astype(np.intp), minlength=bins)
                return Released(self.repeat * counts + sd * self.rng.standard_normal(bins), sd)
            case _:
                raise TypeError("sums only")


def synthetic_table(newton: Newton, fitted: StandardFit, rng: PublicGenerator) -> SyntheticTable:
    """Draws x̃ from the released second moments and ỹ from the released fit."""
    coding, M = newton.coding, fitted.records[-1].curvature.M
    X = np.hstack([_white_rows(coding, M, rng), _rare_rows(coding, M, rng)])
    errors = fitted.scale * rng.standard_normal(_PAIRS)
    block, plain = _as_block(
        coding, np.vstack([X, X]), np.concatenate([X @ fitted.theta + e for e in (errors, -errors)])
    )
    return SyntheticTable(block, plain, fitted.theta)


def _white_rows(coding: Coding, M: FloatArray, rng: PublicGenerator) -> FloatArray:
    """(pairs, q_c) normal rows with second moment M_cc, the intercept (if any) being 1."""
    q, head = coding.white_size, int(coding.design.intercept)
    second = M[:q, :q] / (M[0, 0] if head else 1.0)
    mean = second[0, 1:] if head else np.zeros(q)
    values, vectors = eigen(second[head:, head:] - np.outer(mean, mean))
    root = vectors * np.sqrt(np.maximum(values, 1e-3 * max(float(values[-1:].sum()), 1e-3)))
    slopes = mean + rng.standard_normal((_PAIRS, q - head)) @ root.T
    return np.hstack([np.ones((_PAIRS, head)), slopes])


def _rare_rows(coding: Coding, M: FloatArray, rng: PublicGenerator) -> FloatArray:
    """(pairs, rare dummies) independent rows, b_j⁻¹ at random with second moments M_jj, else 0."""
    a = np.array([1 / where.scale for where in coding.rare_locations])
    share = np.clip(np.diag(M)[coding.white_size :] / np.maximum(a, 1e-9) ** 2, 1e-3, 1 - 1e-3)
    return np.asarray(a * (rng.random((_PAIRS, len(a))) < share))


def _as_block(coding: Coding, X: FloatArray, y: FloatArray) -> tuple[Block, Coding]:
    """The table as a block with plain columns, and a coding that standardises nothing."""
    head = int(coding.design.intercept)
    names = [f"x{j}" for j in range(head, X.shape[1])]
    columns = {name: np.ascontiguousarray(X[:, head + k]) for k, name in enumerate(names)}
    terms = [Term(name, (ColumnValue(name),), -np.inf, np.inf) for name in names]
    response = Term("y", (ColumnValue("y"),), -np.inf, np.inf)
    design = Design(response, tuple(terms), coding.design.intercept, None, (*names, "y"))
    white = len(coding.white)
    plain = Coding(
        design=design,
        white=tuple(terms[:white]),
        white_locations=(Location(0.0, 1.0),) * white,
        rare=tuple(terms[white:]),
        rare_locations=(Location(0.0, 1.0),) * len(coding.rare),
        response=response,
        response_location=Location(0.0, 1.0),
        radius_squared=coding.radius_squared,
        white_radius_squared=coding.white_radius_squared,
    )
    return Block(0, len(y), {**columns, "y": y}, {}), plain
