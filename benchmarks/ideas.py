"""What further ideas would bring to the private regression: ratios of errors or of noise, below 1 is better.

    gram        the first Jacobian known without noise or cost: the most that a cached private Gram
                matrix, reused over the queries of a data set, can bring
    scale       the first residual scale told by somebody (σ/s₀ at the start instead of 1)
    calm        ten steps: six with a fixed rate 1/κ from a scale of .3, then four at one scale whose
                undamped Newton estimates θ_t + sJ⁻¹g_t, with one J, are averaged; no whitening
    steep       weights min(1, R²/t, 3qR²/t²) of t = ‖u‖²: far records fade, nothing released grows
    krasker     ‖u ψ‖ clipped as a whole (Krasker & Welsch 1982) at equal noise or equal efficiency
    gaussian    noise of exact Gaussian-DP accounting relative to the zCDP conversion in use

The first four are simulated with sums in floats and normal noise (median L2 error of the slopes over
BENCH_RUNS (40) tables, relative to the recipe as it is); the others are computed. The tables' seeds are
those of tuning.
"""

import json
import os

import numpy as np
from reticent_server.estimators.newton import maps, recipe
from reticent_server.estimators.newton.bootstrap import NoisySums, run_publicly
from reticent_server.estimators.newton.recipe import Newton
from reticent_server.estimators.newton.report import back_transform
from reticent_server.estimators.newton.schedule import Shares
from reticent_server.estimators.newton.settings import plan_settings
from reticent_server.estimators.newton.target import standardised_table
from scipy.optimize import brentq
from scipy.stats import norm

from benchmarks import designs
from benchmarks.cells import columns
from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.query import LinearRegression, Privacy
from reticent_server.domain.schema import Schema
from reticent_server.domain.steps import Block, GramSum
from reticent_server.numerics.mallows import mallows_weights
from reticent_server.numerics.matrices import floored
from reticent_server.numerics.psi import Huber
from reticent_server.numerics.scale_histogram import BINS, median_ratio, scale_codes
from reticent_server.pipeline import planning

RUNS = int(os.environ.get("BENCH_RUNS", "40"))
CELLS = ((4, 2_000, 0.2), (4, 5_000, 0.2), (10, 2_000, 0.2), (10, 2_000, 1.0), (10, 5_000, 0.2))
STEEP_CELLS = (
    *(("clean", 4, 5_000), ("clean", 10, 20_000), ("t4", 4, 5_000), ("e", 4, 5_000)),
    *(("contaminated", p, n) for p in (4, 10) for n in (5_000, 20_000)),
)
SEED, DELTA, TRUE_SCALE = 500_000, 1e-6, 0.5


def plan_of(p, n, epsilon):
    """A plan with the quantiles of a large table as its profile."""
    X, y = designs.draw("clean", p, 50_000, 999)
    arrays = {**{f"x{j}": x for j, x in enumerate(X.T)}, "y": y}
    quantiles = {k: tuple(np.quantile(v, PROFILE_PROBABILITIES)) for k, v in arrays.items()}
    profile = Profile({k: ColumnProfile(quantiles=q) for k, q in quantiles.items()})
    facts = DatasetFacts("b", "b", 1, "v", n, Schema(tuple(columns(p))), profile)
    query = LinearRegression("y ~ " + " + ".join(f"x{j}" for j in range(p)))
    return planning.plan(facts, query, Privacy(epsilon, DELTA)).estimator


def blocks(p, n, design="clean"):
    for k in range(RUNS):
        X, y = designs.draw(design, p, n, SEED + k)
        arrays = {f"x{j}": np.ascontiguousarray(x) for j, x in enumerate(X.T)}
        yield Block(0, n, {**arrays, "y": y}, {})


def slope_error(coding, theta):
    return float(np.linalg.norm(back_transform(coding).coefficients(theta)[1:] - 1))


def median_error(newton, p, n, sums=NoisySums, design="clean"):
    release = sums(1.0, np.random.default_rng(1))
    fits = [run_publicly(newton.fit(), block, release) for block in blocks(p, n, design)]
    return float(np.median([slope_error(newton.coding, fit.theta) for fit in fits]))


class FreeGram:
    """Noisy sums of which the first Gram sum has no noise to speak of."""

    def __init__(self, repeat, rng):
        self.noisy, self.first = NoisySums(repeat, rng), None

    def __call__(self, part, v):
        if isinstance(part, GramSum) and self.first in (None, part.rho):
            self.first = part.rho
            part = GramSum(part.size, part.clip, 10**20, part.unit_rows)
        return self.noisy(part, v)


def with_gram(plan, p, n):
    shares = Shares(first_jacobian=0.0005, later_jacobians=0.05)
    settings = plan_settings(
        plan.sizes, plan.settings.rho, tuning=None, masked=False, shares=shares
    )
    return median_error(Newton(plan.coding, settings, plan.sizes), p, n, FreeGram)


def with_scale(plan, p, n):
    start, state = TRUE_SCALE / plan.coding.response_location.scale, recipe.State
    try:
        recipe.State = lambda theta, _, *rest: state(theta, start, *rest)
        return median_error(Newton(plan.coding, plan.settings, plan.sizes), p, n)
    finally:
        recipe.State = state


def with_steep_weights(design, p, n, epsilon=1.0):
    """(error, error with steep weights) at one cell."""
    plan, weights = plan_of(p, n, epsilon), maps.mallows_weights
    newton = Newton(plan.coding, plan.settings, plan.sizes)
    before = median_error(newton, p, n, design=design)
    try:
        maps.mallows_weights = lambda t, bound: weights(t, bound) * weights(t, 3 * (p + 1))
        return before, median_error(newton, p, n, design=design)
    finally:
        maps.mallows_weights = weights


def calm(plan, p, n):
    rng, rho = np.random.default_rng(5), plan.settings.rho / RHO_UNITS
    errors = []
    for block in blocks(p, n):
        X, y = standardised_table(plan.coding, block)
        theta = calm_fit(X, y, plan.sizes.mean_norm, rho, rng)
        errors.append(slope_error(plan.coding, theta))
    return float(np.median(errors))


def calm_fit(X, y, kappa, rho, rng, *, steps=10, late=4, c=0.6, start=0.3):
    """θ (q,). Shares of ρ: histograms 10 %, the last Jacobian 6 %, the meat 3 %, gradients the rest,
    65 % of them in the late steps."""
    (n, q), family = X.shape, Huber(c)
    radius = np.sqrt(0.8 * q)
    w = mallows_weights(np.sum(X * X, axis=1), radius**2)
    shares = np.r_[np.full(steps - late, 0.35 / (steps - late)), np.full(late, 0.65 / late)]
    noises = 2 * radius * c / np.sqrt(2 * 0.81 * rho * shares) / n
    theta, s, seen = np.zeros(q), start, []
    for t, sd in enumerate(noises):
        z = (y - X @ theta) / s
        g = X.T @ (w * family.psi(z)) / n + sd * rng.normal(size=q)
        if t >= steps - late:
            seen.append((theta, s * g))
        if t < steps - 1:
            theta = theta + s * g / kappa
        if t in (2, 5):
            counts = np.bincount(scale_codes((y - X @ theta) / s).astype(int), minlength=BINS)
            noisy = counts + rng.normal(size=BINS) / np.sqrt(0.05 * rho)
            s = min(start, s * max(0.25, median_ratio(noisy, n)))
    J = calm_jacobian(X, w * family.derivative(z), radius, kappa * family.mean_derivative, rho, rng)
    return np.mean([at + np.linalg.solve(J, move) for at, move in seen], axis=0)


def calm_jacobian(X, a, radius, expected, rho, rng):
    """A noisy Jacobian, shrunk to a multiple of I as the recipe's is to its prediction."""
    n, q = X.shape
    sd = np.sqrt(2) * radius**2 / np.sqrt(2 * 0.06 * rho) / n
    noise = rng.normal(size=(q, q))
    J = (X.T * a) @ X / n + sd * (noise + noise.T) / 2
    size = max(float(np.trace(J)) / q, 0.15 * expected)
    rate = np.clip((sd * np.sqrt(2 * q) / size - 0.15) / 0.45, 0, 1)
    return size * ((1 - rate) * floored(J / size, 0.25, 1.6) + rate * np.eye(q))


def krasker(q, draws=200_000):
    """(noise at equal efficiency, efficiency at equal noise, efficiency now) for normal designs.

    Score u·ψ_{K/‖u‖}(z): norm ≤ K, curvature E P(|z| ≤ K/‖u‖)‖u‖²/q.
    """
    rng, family = np.random.default_rng(9), Huber(1.0)
    norms = np.sqrt(1 + rng.chisquare(q - 1, draws))
    radius = np.sqrt(0.8 * q)
    w = np.minimum(1, radius**2 / norms**2)
    slope = np.mean(w * norms**2) / q * family.mean_derivative
    mallows_noise = radius / slope
    mallows = slope**2 / (np.mean(w**2 * norms**2) / q * family.mean_square)

    def noise_and_efficiency(K):
        c = K / norms
        inside = 2 * norm.cdf(c) - 1
        square = inside - 2 * c * norm.pdf(c) + c**2 * (1 - inside)
        slope = np.mean(norms**2 * inside) / q
        return K / slope, slope**2 / (np.mean(norms**2 * square) / q)

    same_efficiency = brentq(lambda K: noise_and_efficiency(K)[1] - mallows, 0.01, 50)
    try:
        same_noise = brentq(lambda K: noise_and_efficiency(K)[0] - mallows_noise, 0.01, 50)
        efficiency = noise_and_efficiency(same_noise)[1]
    except ValueError:
        efficiency = float("nan")
    return noise_and_efficiency(same_efficiency)[0] / mallows_noise, efficiency, mallows


def gaussian(epsilon):
    """σ of exact Gaussian-DP accounting over σ of the zCDP conversion, for sums that are all Gaussian."""

    def excess(mu):
        tail = norm.cdf(mu / 2 - epsilon / mu)
        return tail - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) - DELTA

    mu = brentq(excess, 1e-4, 50)
    return float(np.sqrt(2 * rho_units(epsilon, DELTA) / RHO_UNITS) / mu)


def main() -> None:
    rows = []
    print("   p      n  eps  recipe    gram   scale    calm")
    for p, n, epsilon in CELLS:
        plan = plan_of(p, n, epsilon)
        base = median_error(Newton(plan.coding, plan.settings, plan.sizes), p, n)
        found = [f(plan, p, n) / base for f in (with_gram, with_scale, calm)]
        print(f"{p:4d} {n:6d} {epsilon:4g} {base:7.4f} " + " ".join(f"{x:7.2f}" for x in found))
        names = dict(zip(("gram", "scale", "calm"), found, strict=True))
        rows.append({"p": p, "n": n, "epsilon": epsilon, "recipe": base} | names)
    steep = []
    for design, p, n in STEEP_CELLS:
        before, after = with_steep_weights(design, p, n)
        print(f"steep: {design:12} {p:2d} {n:6d} {before:7.4f} x{after / before:.2f}", flush=True)
        steep.append({"design": design, "p": p, "n": n, "recipe": before, "steep": after / before})
    clipping = {q: krasker(q) for q in (5, 11)}
    for q, (noise, efficiency, now) in clipping.items():
        print(
            f"krasker q={q}: noise x{noise:.2f} at efficiency {now:.3f}; {efficiency:.3f} at equal noise"
        )
    accounting = {epsilon: gaussian(epsilon) for epsilon in (0.2, 1.0, 4.0)}
    print("gaussian: noise " + ", ".join(f"x{v:.3f} (eps={e:g})" for e, v in accounting.items()))
    print(
        json.dumps(
            {
                "benchmark": "ideas",
                "cells": rows,
                "steep": steep,
                "krasker": clipping,
                "gaussian": accounting,
            }
        )
    )


if __name__ == "__main__":
    main()
