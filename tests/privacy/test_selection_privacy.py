"""The privacy suite of selection: exact output probabilities on small grids, and the real sampler."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.private import Private
from reticent_server.domain.steps import QuantileTree
from reticent_server.mechanisms import quantile_tree, selection
from reticent_server.numerics.grids import cell_codes, spread

ALPHAS = np.array([1.01, 1.5, 2, 3, 5, 10, 30, 100])


def gumbel_probabilities(scores, scale):
    weights = np.exp((np.asarray(scores, dtype=float) - max(scores)) / scale)
    return weights / weights.sum()


def noisy_max_probabilities(scores, scale, noise):
    """P(index k has the largest score + noise), by integration on a fine grid."""
    z = (np.linspace(-30, 60, 180_001) - np.asarray(scores)[:, None] / scale).astype(float)
    density, distribution = noise.pdf(z), noise.cdf(z)
    others = [np.prod(np.delete(distribution, k, axis=0), axis=0) for k in range(len(scores))]
    found = (density * np.array(others)).sum(axis=1)
    return found / found.sum()


def worst_rho(p, q):
    """max over α of D_α(P‖Q)/α, both ways."""
    x, y = np.log(p), np.log(q)
    return max(
        logsumexp(alpha * a + (1 - alpha) * b) / (alpha - 1) / alpha
        for a, b in ((x, y), (y, x))
        for alpha in ALPHAS
    )


def neighbouring_scores():
    """Pairs of scores that differ by at most 1 each: ties, spread, and every sign pattern."""
    for base in ((0, 0, 0, 0), (0, 1, 2, 5), (3, 3, -1, -1)):
        for step in product((-1, 1), repeat=4):
            yield base, tuple(b + s for b, s in zip(base, step, strict=True))


def audit(probabilities, scale):
    return max(
        worst_rho(probabilities(a, scale), probabilities(b, scale))
        for a, b in neighbouring_scores()
    )


@pytest.mark.parametrize("rho", [RHO_UNITS // 100, RHO_UNITS // 2, 4 * RHO_UNITS])
def test_gumbel_noise_costs_what_is_charged(rho):
    b = selection.gumbel_scale(1, rho)
    worst = audit(gumbel_probabilities, b) * RHO_UNITS
    assert 0.8 * min(rho, RHO_UNITS // 100) <= worst <= rho
    assert selection.billed_rho(b, 1) * RHO_UNITS <= rho * (1 + 1e-12)


@pytest.mark.parametrize("noise", [stats.laplace, stats.expon], ids=["laplace", "exponential"])
def test_the_audit_rejects_other_noise(noise):
    """The same b with Laplace or one-sided exponential noise breaks ε²/8."""
    rho = RHO_UNITS // 100
    b = selection.gumbel_scale(1, rho)
    worst = audit(lambda s, scale: noisy_max_probabilities(s, scale, noise), b) * RHO_UNITS
    assert worst > 1.1 * rho


def test_the_sampler_draws_the_exponential_mechanism():
    scores, b = np.array([0, 3, 5, 5, -4], dtype=np.int64), 2.0
    draws = np.bincount([selection.select(Private(scores), b) for _ in range(8000)], minlength=5)

    def p_value(scale):
        return stats.chisquare(draws, 8000 * gumbel_probabilities(scores, scale)).pvalue

    assert p_value(b) > 1e-6
    assert p_value(0.7 * b) < 1e-6
    assert p_value(1.3 * b) < 1e-6


def tree_distribution(part, counts):
    """The exact joint law of the selected cells, walking the recursion as `release` does."""
    cumulative = np.concatenate([[0], np.cumsum(counts)])
    exact = quantile_tree.exact_probabilities(part.probabilities)
    b = quantile_tree.scale(part)
    root = quantile_tree.levels(part.probabilities)[0][0]

    def law(tasks, chosen, probability):
        if not tasks:
            yield tuple(chosen[k] for k in sorted(chosen)), probability
            return
        (node, low, high), rest = tasks[0], tasks[1:]
        r = node.rank(exact)
        scores = quantile_tree.scores_of(cumulative[low : high + 2], r)
        for offset, p in enumerate(gumbel_probabilities(scores, b * r.denominator)):
            cell = low + offset
            left, right = node.children(exact)
            more = [(left, low, cell)] if left else []
            more += [(right, min(cell + 1, high), high)] if right else []
            yield from law(rest + more, chosen | {node.middle: cell}, probability * p)

    found = {}
    for outcome, probability in law([(root, 0, len(counts) - 1)], {}, 1.0):
        found[outcome] = found.get(outcome, 0.0) + probability
    return found


@pytest.mark.parametrize("probabilities", [(0.5,), (0.25, 0.5, 0.75), (0.05, 0.1, 0.9)])
@pytest.mark.parametrize("unit_rows", [1, 2])
def test_quantiles_cost_what_is_charged_on_every_small_table(probabilities, unit_rows):
    """All tables of n = 4 on 4 cells and all their neighbours: the exact loss is within ρ."""
    part = QuantileTree((1.0, 2.0, 3.0, 4.0), probabilities, 2 * RHO_UNITS, unit_rows)
    tables = [c for c in product(range(5), repeat=4) if sum(c) in (3, 4)]
    laws = {counts: tree_distribution(part, counts) for counts in tables}
    worst = 0.0
    for a, b in product(tables, repeat=2):
        moved = sum(abs(x - y) for x, y in zip(a, b, strict=True))
        if a != b and moved <= 2 * unit_rows and abs(sum(a) - sum(b)) <= unit_rows:
            p, q = (np.array([laws[t].get(k, 0.0) for k in laws[a]]) for t in (a, b))
            worst = max(worst, worst_rho(p, q))
    assert worst * RHO_UNITS <= part.rho
    assert worst * RHO_UNITS > 0.2 * part.rho
    assert quantile_tree.billed_rho(part) * RHO_UNITS <= part.rho


def test_release_follows_the_law_that_was_audited():
    part = QuantileTree((1.0, 2.0, 3.0, 4.0), (0.25, 0.5, 0.75), RHO_UNITS)
    counts = np.array([3, 1, 0, 4], dtype=np.int64)
    law = tree_distribution(part, tuple(counts))
    keys = [k for k in law if law[k] > 1e-4]
    draws = [
        tuple(int(v) - 1 for v in quantile_tree.release(part, Private(counts)).values)
        for _ in range(3000)
    ]
    seen = np.array([draws.count(k) for k in keys])
    expected = np.array([law[k] for k in keys])
    assert stats.chisquare(seen, seen.sum() * expected / expected.sum()).pvalue > 1e-6


def test_level_factors_by_brute_force():
    """F covers every way in which one record can move between or within a level's sub-problems."""
    probabilities = tuple(k / 20 for k in range(1, 20))
    exact = quantile_tree.exact_probabilities(probabilities)
    factors = quantile_tree.squared_sensitivity(probabilities)
    for level, factor in zip(quantile_tree.levels(probabilities), factors, strict=True):
        shifts = [max(n.rank(exact), 1 - n.rank(exact)) ** 2 for n in level]
        between = sum(sorted(shifts)[-2:], Fraction(0)) if len(shifts) > 1 else Fraction(0)
        assert factor == max(Fraction(1), between)


def test_quantiles_are_close_on_data_with_ties():
    rng = np.random.default_rng(5)
    values = np.where(rng.random(20_000) < 0.75, 0.0, rng.integers(1, 50, 20_000))
    grid = tuple(float(v) for v in range(51))
    part = QuantileTree(spread(grid), (0.25, 0.5, 0.74, 0.8, 0.95), RHO_UNITS // 100)
    codes = cell_codes(values, grid, start=0)
    found = quantile_tree.release(part, Private(quantile_tree.encode(part, codes))).values
    assert list(found[:3]) == [0.0, 0.0, 0.0]
    assert np.all(np.abs(found[3:] - np.quantile(values, [0.8, 0.95])) <= 2)
