# SPDX-License-Identifier: Apache-2.0
"""Rounds beside meta-analysis: logit and Poisson at five sites of 10,000 rows, ε = 1 each.

*Rounds* (of no kind: a prototype with numpy's noise). At public coefficients β each site releases
Σωx(y − μ) and Σωwxxᵀ, with ω = min(1, R/‖x‖) in coordinates of its profile and
Gaussian noise; the sites' sums are added and make a Newton step. A step at β is asked at the same
share of ρ at every site: SHARES. Residuals are clipped to ±1 (logit: as they are) or ±RESIDUAL·√μ
over √μ (Poisson: the Pearson residual).

*Meta*: each site's released `glm` fit at ε = 1, fixed effects by precision.

By design: coverage of the true slopes by 95 % intervals, median width over that of maximum
likelihood on all rows, share of slopes with intervals.

ROUNDS_RUNS (20): samples.
"""

import os

import numpy as np
from scipy.special import expit

from benchmarks.accuracy import BenchTable
from reticent._pooled.meta import meta
from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.kinds.glm.kind import Glm

RUNS = int(os.environ.get("ROUNDS_RUNS", "20"))
EPSILON, DELTA = 1.0, 1e-6
N, SITES = 10_000, 5
SLOPES = (0.5, -0.3, 0.2, 0.0)
SHARES = (0.07, 0.13, 0.8)
"""Of ρ by round; CURVED of each is for the information."""
CURVED = 0.1
RESIDUAL = 3.0
"""Where Poisson's Pearson residuals are clipped: beyond it are 0.3 % of a normal law's."""


def tables(family, p, rng):
    """A table a site; x1's mean and the intercept differ by site."""
    found = []
    for k in range(SITES):
        X = rng.normal(size=(N, p))
        X[:, 1:] += 0.4 * X[:, :1]
        X[:, 0] += 0.2 * k
        eta = -0.5 + 0.1 * k + X @ np.array(SLOPES[:p])
        y = (rng.random(N) < expit(eta)) if family == "binomial" else rng.poisson(np.exp(eta))
        y = np.minimum(y.astype(float), 30.0)
        arrays = {"y": y} | {f"x{j + 1}": np.ascontiguousarray(X[:, j]) for j in range(p)}
        kind = (
            Column("y", ColumnKind.BOOLEAN, 0.0, 1.0)
            if family == "binomial"
            else Column("y", ColumnKind.INTEGER, 0.0, 30.0)
        )
        columns = [Column(f"x{j + 1}", ColumnKind.NUMERIC, -10.0, 10.0) for j in range(p)]
        found.append(BenchTable(arrays, [kind, *columns]).profiled(0.5))
    return found


def law(family, eta):
    """Means and variances at η."""
    if family == "binomial":
        mu = expit(eta)
        return mu, mu * (1 - mu)
    mu = np.exp(np.clip(eta, -10, 10))
    return mu, mu


def coordinates(site, p):
    """Centres and scales from the site's profile: public."""
    found = [site.facts.profile.columns[f"x{j + 1}"].known_quantiles() for j in range(p)]
    centres = np.array([q[0.5] for q in found])
    scales = np.array([(q[0.75] - q[0.25]) / 1.349 for q in found])
    return centres, scales


def released(site, family, beta, k, rho, curved, common, rng):
    """(score (q,), information (q, q) or None, variance of the score's noise, sampling) of a site,
    in the first site's coordinates, β in these. Columns: intercepts of sites, then z.
    """
    p = len(common[0])
    x = np.column_stack([site.arrays[f"x{j + 1}"] for j in range(p)])
    z = np.column_stack([np.ones(N), (x - common[0]) / common[1]])
    R = 1.2 * np.sqrt(p + 1)
    weight = np.minimum(1, R / np.linalg.norm(z, axis=1))
    own = np.append(beta[k], beta[SITES:])
    eta = z @ own
    mu, w = law(family, eta)
    e = site.arrays["y"] - mu
    bound, top = 1.0, 0.25
    if family == "poisson":
        # √μ is unbounded: rows count min(1, 1/√μ) as much, and Pearson residuals are clipped
        shrink = np.minimum(1, 1 / np.sqrt(mu))
        e = np.clip(e / np.sqrt(mu), -RESIDUAL, RESIDUAL) * np.sqrt(mu) * shrink
        w, bound, top = w * shrink, RESIDUAL, 1.0
    s = (weight * e) @ z
    share = rho * (1 - curved)
    sd = 2 * R * bound / np.sqrt(2 * share)
    s = s + rng.normal(size=p + 1) * sd
    info = None
    if curved:
        info = (z * (weight * w)[:, None]).T @ z
        sd_info = np.sqrt(2) * R**2 * top / np.sqrt(2 * rho * curved)
        E = np.triu(rng.normal(size=(p + 1, p + 1)), 1) / np.sqrt(2) * sd_info
        info = info + E + E.T + np.diag(rng.normal(size=p + 1)) * sd_info

    return s, info, sd**2


def rounds(sites, family, p, rng):
    """Slopes and standard errors (p,) after len(SHARES) rounds."""
    common = coordinates(sites[0], p)
    beta = np.zeros(SITES + p)
    rho = rho_units(EPSILON, DELTA) / RHO_UNITS
    for share in SHARES:
        S, J = np.zeros(SITES + p), np.zeros((SITES + p, SITES + p))
        noise = np.zeros(SITES + p)
        for k, site in enumerate(sites):
            at = [k, *range(SITES, SITES + p)]
            s, info, variance = released(site, family, beta, k, rho * share, CURVED, common, rng)
            S[at] += s
            J[np.ix_(at, at)] += info
            noise[at] += variance
        values, vectors = np.linalg.eigh((J + J.T) / 2)
        inverse = (vectors / np.maximum(values, 0.02 * N)) @ vectors.T
        step = inverse @ S
        beta = beta + step * min(1.0, 2.0 / max(np.abs(step).max(), 1e-9))
        V = inverse @ (J + np.diag(noise)) @ inverse

    scales = common[1]
    return beta[SITES:] / scales, np.sqrt(np.diag(V))[SITES:] / scales


def likelihood(sites, family, p):
    """Standard errors (p,) of maximum likelihood on all rows with site intercepts."""
    X = np.vstack([np.column_stack([t.arrays[f"x{j + 1}"] for j in range(p)]) for t in sites])
    D = np.kron(np.eye(SITES), np.ones((N, 1)))
    Z, y = np.column_stack([D, X]), np.concatenate([t.arrays["y"] for t in sites])
    beta = np.zeros(SITES + p)
    for _ in range(12):
        mu, w = law(family, Z @ beta)
        J = (Z * w[:, None]).T @ Z
        beta += np.linalg.solve(J, Z.T @ (y - mu))
    return np.sqrt(np.diag(np.linalg.inv(J)))[SITES:]


def own_fits(sites, family, p):
    """(p, 2) estimate and error by meta-analysis; NaN where less than two sites have intervals.
    Also the share of the sites' slopes that have them.
    """
    formula = "y ~ " + " + ".join(f"x{j + 1}" for j in range(p))
    fits = [site.reply(site.plan(Glm(formula, family), EPSILON)) for site in sites]
    found, shown = np.full((p, 2), np.nan), 0
    for j in range(p):
        pairs = {}
        for k, fit in enumerate(fits):
            if fit is None:
                continue
            at = list(fit["terms"]).index(f"x{j + 1}")
            low, _ = fit["confidence_intervals"][at]
            if low is not None and np.isfinite(low):
                pairs[str(k)] = (fit["coefficients"][at], fit["standard_errors"][at])
        shown += len(pairs)
        if len(pairs) > 1:
            one = meta(pairs, method="fixed")
            found[j] = one.estimate, one.se
    return found, shown / (p * len(sites))


def judged(estimates, errors, exact, p):
    """(p, 3): covered, width over maximum likelihood's, has an interval."""
    known = np.isfinite(errors)
    inside = np.abs(estimates - SLOPES[:p]) <= 1.959964 * errors
    return np.column_stack([np.where(known, inside, np.nan), errors / exact, known])


def main() -> None:
    for family in ("binomial", "poisson"):
        for p in (2, 4):
            by_way, each = {"rounds": [], "meta": []}, []
            for run in range(RUNS):
                rng = np.random.default_rng(8_300_000 + 1000 * p + run)
                sites = tables(family, p, rng)
                exact = likelihood(sites, family, p)
                by_way["rounds"].append(judged(*rounds(sites, family, p, rng), exact, p))
                found, shown = own_fits(sites, family, p)
                by_way["meta"].append(judged(*found.T, exact, p))
                each.append(shown)
                for site in sites:
                    site.close()
            for way, parts in by_way.items():
                all_ = np.concatenate(parts)
                print(
                    f"{family}, {p} slopes, {way}: coverage {np.nanmean(all_[:, 0]):.3f}, "
                    f"width {np.nanmedian(all_[:, 1]):.2f}, intervals {all_[:, 2].mean():.2f} of "
                    f"{len(all_)}"
                    + (f", of single sites {np.mean(each):.2f}" if way == "meta" else ""),
                    flush=True,
                )
