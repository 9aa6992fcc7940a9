# SPDX-License-Identifier: Apache-2.0
"""Exact laws of selections and of quantile recursions, from the whole-number weights that are drawn
from.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from reticent_server.domain.steps import FloatArray, QuantileTree
from reticent_server.mechanisms import quantile_tree, selection
from reticent_server.mechanisms.selection import Ladder

ALPHAS = np.array([1.01, 1.5, 2, 3, 5, 10, 30, 100])


def log_weights(levels: ArrayLike, ladder: Ladder) -> FloatArray:
    """ln w (K,), from exact mantissas and octaves."""
    octaves, mantissas = selection.weights(np.asarray(levels, dtype=np.int64), ladder.bits)
    return np.asarray(np.log(mantissas.astype(float)) - octaves * np.log(2))


def probabilities(levels: ArrayLike, ladder: Ladder) -> FloatArray:
    """The law of the selected index (K,)."""
    logs = log_weights(levels, ladder)
    return np.asarray(np.exp(logs - logsumexp(logs)))


def exact_probabilities(levels: ArrayLike, ladder: Ladder) -> list[Fraction]:
    """The same as fractions; for levels that are not far apart."""
    octaves, mantissas = selection.weights(np.asarray(levels, dtype=np.int64), ladder.bits)
    weights = [
        Fraction(int(m), 1) / 2 ** int(o - octaves.min())
        for m, o in zip(mantissas, octaves, strict=True)
    ]
    return [w / sum(weights) for w in weights]


def distances(cumulative: ArrayLike, r: Fraction) -> list[Fraction]:
    """How far the rank r N is from those of each cell. cumulative: counts at lower ends, and N."""
    ends = [int(c) for c in np.asarray(cumulative)]
    wanted = r * ends[-1]
    return [
        min(abs(low - wanted), abs(high - wanted)) * (not low <= wanted <= high)
        for low, high in pairwise(ends)
    ]


def divergence(p: FloatArray, q: FloatArray, alpha: float) -> float:
    """D_α(P‖Q) of two laws on the same points."""
    x, y = np.log(p), np.log(q)
    return float(logsumexp(alpha * x + (1 - alpha) * y)) / (alpha - 1)


def worst_rho(p: FloatArray, q: FloatArray) -> float:
    """max over α of D_α/α, both ways."""
    both = ((p, q), (q, p))
    return max(divergence(a, b, float(k)) / float(k) for a, b in both for k in ALPHAS)


def tree_law(part: QuantileTree, counts: ArrayLike) -> dict[tuple[int, ...], float]:
    """The exact joint law of the selected sub-cells, walking the recursion as `release` does; -1
    for all where there are said to be no records."""
    spread = quantile_tree.spread(np.asarray(counts), part.repeats)
    cumulative = np.concatenate([[0], np.cumsum(spread)])
    exact = quantile_tree.exact_probabilities(part.probabilities)
    ladder = quantile_tree.ladder(part)
    root = quantile_tree.levels(part.probabilities)[0][0]

    def law(
        tasks: list[Any], chosen: dict[int, int], probability: float
    ) -> Iterator[tuple[tuple[int, ...], float]]:
        if not tasks:
            yield tuple(chosen[k] for k in sorted(chosen)), probability
            return
        (node, low, high), rest = tasks[0], tasks[1:]
        inside = quantile_tree.meeting(cumulative[low : high + 2], low, part.repeats)
        levels = quantile_tree.levels_of(inside, node.rank(exact), ladder.steps, part.fractional)
        if part.may_be_empty and node is root:
            levels = np.append(levels, quantile_tree.empty_level(part, int(cumulative[-1])))
        for offset, p in enumerate(probabilities(levels, ladder)):
            cell = low + offset
            if cell == len(spread):
                yield (-1,) * len(exact), probability * p
                continue
            left, right = node.children(exact)
            more = [(left, low, cell)] if left else []
            more += [(right, min(cell + 1, high), high)] if right else []
            yield from law(rest + more, chosen | {node.middle: cell}, probability * p)

    found: dict[tuple[int, ...], float] = {}
    for outcome, probability in law([(root, 0, len(spread) - 1)], {}, 1.0):
        found[outcome] = found.get(outcome, 0.0) + probability
    return found
