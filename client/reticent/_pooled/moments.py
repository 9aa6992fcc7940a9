# SPDX-License-Identifier: Apache-2.0
"""Moments of several sites, added.

Site k's release is S_k + N_k in its own public coordinates z̃_k = B_k z. All are brought to those
of the first site, where zᵀ stands for the columns and, beyond them, for what a formula needs to
tell sites apart: `site[k]`, 1 at site k, and `site[k]:x`, for every site but the first. As these
are linear in z at each site, T_k z̃_k with a public T_k, the pooled moments are

    S = Σ w_k T_k S_k T_kᵀ,    N = Σ w_k T_k N_k T_kᵀ,    Σ w_k = 1.

The noises are independent and their laws are public, so N's covariance is the sum of those of its
parts, exactly. Sampling: with records of one law of errors Var = σ² Σ w_k²/n_k · S_XX⁻¹, so that
1/Σ(w_k²/n_k) stands for n. With w_k ∝ n_k, S is the noisy moments of the pooled people, and n their
number.

*Weights by precision.* An entry of S_k has the variance of sampling, about 1/n_k, and of noise,
about s_k²q_k² with q_k the mean diagonal of Q_k; 1/(1/n_k + s_k²q_k²) is best where all sites have
one law. Noise at equal ε is as large in a small site's sums as in a large site's: with weights by
people a site of few records costs more than it brings.

*Clipping.* λ_k(S_k − S₂k) is what may be missing from site k; that of the pool is their sum with
the weights w_k. Before it is seen, site k's has the size t_k/√n_k in units of σ, and all may have
one sign: together Σ w_k t_k/√n_k, that is t = √n Σ w_k t_k/√n_k.
"""

from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np

from reticent._study.moments import FloatArray, Moments, Narrow, NoisePart

SITE = "site"
"""The factor that tells sites apart in formulas."""


def pooled_moments(sites: Mapping[str, Moments], weights: Sequence[float]) -> Moments:
    """Σ w_k of the sites' moments (q,), which have the same columns; weights sum to 1."""
    first = next(iter(sites.values()))
    turned = [_turned(moments, first, k, len(sites)) for k, moments in enumerate(sites.values())]
    found = list(zip(weights, sites.values(), turned, strict=True))
    n = 1 / sum(w**2 / m.n for w, m, _ in found)
    names, centres, scales = _columns(first, list(sites))
    parts = tuple(NoisePart(m.root @ T.T, w * m.sd) for w, m, T in found)
    sums = np.asarray(sum(w * (T @ m.sums @ T.T) for w, m, T in found))
    return Moments(
        names=names,
        centres=centres,
        scales=scales,
        sums=sums,
        root=parts[0].root,
        sd=parts[0].sd,
        n=n,
        narrow=_narrow(found, sums, n),
        lost=_lost(found, len(names)),
        effects=first.effects,
        stretch=max(m.stretch for m in sites.values()),
        several=parts,
    )


def precise(moments: Moments) -> float:
    """1/(1/n + s²q²): what a site's moments are worth where all sites have one law."""
    typical = float(np.mean(np.diag(moments.overlap)))
    return 1 / (1 / moments.n + (moments.sd * typical) ** 2)


def _turned(moments: Moments, common: Moments, k: int, sites: int) -> FloatArray:
    """T_k (q·sites, q): from a site's z̃_k to the pooled columns."""
    here, there = (_units(m) for m in (moments, common))
    base = np.linalg.solve(there, here)
    raw = here / np.append(1.0, common.scales[1:])[:, None]  # x in the common scale, not centred
    q = len(base)
    found = np.zeros((q * sites, q))
    found[:q] = base
    if k > 0:
        found[q * k : q * (k + 1)] = raw
    return found


def _units(moments: Moments) -> FloatArray:
    """D (q, q): z = Dz̃."""
    D = np.diag(moments.scales)
    D[1:, 0] = moments.centres[1:]
    return np.asarray(D)


def _columns(
    first: Moments, sites: Sequence[str]
) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
    """Names, centres and scales of the pooled columns."""
    told = [f"{SITE}[{name}]" for name in sites[1:]]
    names = [n for site in told for n in (site, *(f"{site}:{x}" for x in first.names[1:]))]
    centres = np.concatenate([first.centres, np.zeros(len(names))])
    scales = np.tile(first.scales, len(sites))
    return (*first.names, *names), centres, scales


def _narrow(
    found: Sequence[tuple[float, Moments, FloatArray]], sums: FloatArray, n: float
) -> Narrow | None:
    """What clipping may have moved, of the sites that say it; its λ is 1."""
    missing, parts, typical = np.zeros_like(sums), [], 0.0
    for w, m, T in found:
        if m.narrow is not None:
            factor = w * m.narrow.ratio
            missing += factor * (T @ (m.sums - m.narrow.sums) @ T.T)
            parts.append(NoisePart(m.narrow.root @ T.T, factor * m.narrow.sd))
            typical += w * m.narrow.typical / sqrt(m.n)
    if not parts:
        return None
    return Narrow(sums - missing, parts[0].root, parts[0].sd, 1.0, sqrt(n) * typical, tuple(parts))


def _lost(found: Sequence[tuple[float, Moments, FloatArray]], size: int) -> FloatArray:
    """(q·sites,) of the columns the mean over sites by weight, of products with a site its own."""
    q = len(found[0][1].names)
    each = [(w, np.zeros(q) if m.lost is None else m.lost) for w, m, _ in found]
    mean = sum(w * lost for w, lost in each)
    own = [lost for _, lost in each[1:]]
    return np.concatenate([mean, *own])[:size]
