# SPDX-License-Identifier: Apache-2.0
"""Simulated regressions: (X (n, p), y (n,)) from a seed, the true slopes, and the public bounds of
their columns.

    clean           x of unit variance with AR(.5) correlation, slopes 1, intercept 0,
                    errors N(0, .5²)
    t4              errors t(4), scaled to sd .5
    contaminated    the first 5 % of the records replaced: y ~ N(12, .1²), every x ~ N(5, .1²)

and designs like those of Avella-Medina (2021), Appendix D.2 (some of the paper's constants are lost
in our copy of it; these are what is used here):

    a   4 iid Bernoulli(.15) covariates, slopes 1, errors N(0, .5²)
    b   3 iid N(0, 1) covariates, slopes (.5, −.25, 0), errors N(0, .5)
    c   clean, p = 4
    d   c with t(4) errors (not scaled: .5 t(4))
    e   d with t(4) covariates (scaled to unit variance, AR(.5) correlation)
    f   contaminated, p = 4
"""

import numpy as np

_SD, _OUTLIERS = 0.5, 0.05
_UNIT_T4 = np.sqrt(2.0)  # the standard deviation of t(4)


def slopes(errors, p):
    """The true slopes (p,) of a design."""
    return np.array([0.5, -0.25, 0.0]) if errors == "b" else np.ones(p)


def size(errors, p):
    """The number of slopes: the paper's designs fix their own."""
    return {"b": 3}.get(errors, 4 if len(errors) == 1 else p)


def draw(errors, p, n, seed):
    """(X, y) of a design."""
    rng = np.random.default_rng(seed)
    X = _covariates(errors, p, n, rng)
    y = X @ slopes(errors, p) + _errors(errors, n, rng)
    if errors in ("contaminated", "f"):
        k = round(_OUTLIERS * n)
        X[:k] = rng.normal(5.0, 0.1, (k, p))
        y[:k] = rng.normal(12.0, 0.1, k)
    return X, y


def _covariates(errors, p, n, rng):
    if errors == "a":
        return (rng.random((n, p)) < 0.15).astype(float)
    if errors == "b":
        return rng.normal(size=(n, p))
    heavy = errors == "e"
    rows = rng.standard_t(4, (n, p)) / _UNIT_T4 if heavy else rng.normal(size=(n, p))
    return rows @ np.linalg.cholesky(0.5 ** np.abs(np.subtract.outer(range(p), range(p)))).T


def _errors(errors, n, rng):
    if errors == "t4":
        return _SD / _UNIT_T4 * rng.standard_t(4, n)
    if errors in ("d", "e"):
        return _SD * rng.standard_t(4, n)
    return (np.sqrt(0.5) if errors == "b" else _SD) * rng.normal(size=n)
