# SPDX-License-Identifier: Apache-2.0
"""The privacy suite of selection: the exact law of what is drawn, and the real sampler against
it.
"""

from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.private import Private
from reticent_server.mechanisms import _sampler, selection
from support.attacks.selection_laws import exact_probabilities, probabilities, worst_rho
from support.seeds import seeded


def noisy_max_probabilities(scores: Any, scale: Any, noise: Any) -> Any:
    """P(index k has the largest score + noise), by integration on a fine grid."""
    z = (np.linspace(-30, 60, 180_001) - np.asarray(scores)[:, None] / scale).astype(float)
    density, distribution = noise.pdf(z), noise.cdf(z)
    others = [np.prod(np.delete(distribution, k, axis=0), axis=0) for k in range(len(scores))]
    found = (density * np.array(others)).sum(axis=1)
    return found / found.sum()


def neighbouring_scores() -> Iterator[Any]:
    """Pairs of scores that differ by at most 1 each: ties, spread, and every sign pattern."""
    for base in ((0, 0, 0, 0), (0, 1, 2, 5), (3, 3, -1, -1)):
        for step in product((-1, 1), repeat=4):
            yield base, tuple(b + s for b, s in zip(base, step, strict=True))


def audit(law: Any) -> Any:
    return max(worst_rho(law(a), law(b)) for a, b in neighbouring_scores())


@pytest.mark.sample(4)
@pytest.mark.parametrize("rho", [1000, RHO_UNITS // 100, RHO_UNITS // 2, 4 * RHO_UNITS])
def test_a_selection_costs_what_is_charged(rho: int) -> None:
    ladder = selection.ladder(rho)
    worst = audit(lambda s: probabilities(ladder.levels(np.array(s)), ladder)) * RHO_UNITS
    assert 0.8 * min(rho, RHO_UNITS // 100) <= worst <= rho + 1  # float64 at 10⁻⁹: to a unit
    assert (1 - 1e-3) * rho <= selection.billed_rho(ladder.steps, ladder) * RHO_UNITS <= rho


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("noise", [stats.laplace, stats.expon], ids=["laplace", "exponential"])
def test_the_audit_rejects_other_noise(noise: Any) -> None:
    """The same scale with Laplace or one-sided exponential noise breaks ε²/8."""
    rho = RHO_UNITS // 100
    b = selection.ladder(rho).scale
    assert audit(lambda s: noisy_max_probabilities(s, b, noise)) * RHO_UNITS > 1.1 * rho


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0, 100.0])
def test_the_ratio_of_any_two_laws_is_within_epsilon_and_attains_it(epsilon: float) -> None:
    """By exact fractions: pure ε, with one candidate that gains while all others lose."""
    ladder = selection.ladder_of_loss(epsilon / 2)
    d, worst = ladder.steps, 0.0
    for base in (0, 1, 7 * d, 12_345_678):
        table = [base] + [base + d + 10] * 3
        other = [base + d] + [base + 10] * 3
        for a, b in ((table, other), (other, table)):
            p, q = exact_probabilities(a, ladder), exact_probabilities(b, ladder)
            worst = max(
                worst,
                *(float((x / y).limit_denominator(10**30)) for x, y in zip(p, q, strict=True)),
            )
            ratios = [Decimal(x.numerator) / x.denominator / (Decimal(y.numerator) / y.denominator)
                      for x, y in zip(p, q, strict=True)]  # fmt: skip
            assert max(r.ln() for r in ratios) - min(r.ln() for r in ratios) <= Decimal(epsilon)
    assert np.log(worst) > 0.45 * min(epsilon, 1.0)


def test_levels_have_the_weight_of_their_number() -> None:
    """|ln w(j) + j ln 2/Q − 42 ln 2| ≤ ξ, by 40 digits; w falls with the level."""
    rng = seeded(3)
    levels = np.concatenate([rng.integers(-(2**33), 2**33, 500), [0, 1, 65_535, 65_536, 2**32 - 1]])
    with localcontext() as context:
        context.prec = 40
        for bits in (16, 24, 32):
            octaves, mantissas = selection.weights(levels, bits)
            for j, o, m in zip(levels.tolist(), octaves.tolist(), mantissas.tolist(), strict=True):
                exact = Decimal(2) ** (42 - Decimal(j) / 2**bits)
                error = (Decimal(m) / Decimal(2) ** o / exact).ln()
                assert abs(error) <= Decimal(2) ** -36
    octaves, mantissas = selection.weights(np.arange(-(2**17), 2**17), 16)
    assert np.all(np.diff(mantissas * 2.0**-octaves) < 0)


@pytest.mark.slow
def test_the_sampler_draws_the_exponential_mechanism() -> None:
    scores, ladder = np.array([0, 3, 5, 5, -4]), selection.ladder_of_loss(0.5)
    levels = Private(ladder.levels(scores))
    draws = np.bincount([selection.select(levels, ladder) for _ in range(8000)], minlength=5)

    def p_value(factor: Any) -> Any:
        weights = np.exp(scores / (factor * ladder.scale))
        return stats.chisquare(draws, 8000 * weights / weights.sum()).pvalue

    assert p_value(1.0) > 1e-6
    assert p_value(0.7) < 1e-6
    assert p_value(1.3) < 1e-6


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("shift", [1, 3, 42, 43])
def test_a_proposal_is_kept_with_its_own_probability(shift: int) -> None:
    """m 2^(−e)/⌈m 2^(−e)⌉ for mantissas near powers of two: a far index is not drawn too often."""
    for mantissa in (2**41 + 1, 3 * 2**40, 2**42):
        ceiling = -(-mantissa >> shift)
        kept = sum(selection._kept(mantissa, shift, ceiling) for _ in range(20_000))
        p = float(Fraction(mantissa, 2**shift) / ceiling)
        assert abs(kept - 20_000 * p) <= 5.5 * np.sqrt(20_000 * p * (1 - p)) + 1e-9


def test_a_far_index_is_kept_word_by_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """At e = 300: all of four words have to be 0, and then the rest decides."""
    asked, values = [], iter([0, 0, 0, 1, 0, 0, 0, 0])

    def words(count: Any) -> list[Any]:
        asked.append(count)
        return [next(values)]

    monkeypatch.setattr(_sampler, "words", words)
    monkeypatch.setattr(_sampler, "below", lambda limit: 0 if limit == 1 << 44 else limit)
    assert not selection._kept(2**42, 300, 1)
    assert len(asked) == 4
    assert selection._kept(2**42, 300, 1)
    assert len(asked) == 8


def test_every_index_can_be_drawn_however_far_levels_are_apart() -> None:
    levels = np.array([0, 10**6, 2**61, -(2**61), 5])
    ladder = selection.ladder(RHO_UNITS)
    assert {selection.select(Private(levels), ladder) for _ in range(20)} == {3}
    octaves, mantissas = selection.weights(levels, ladder.bits)
    assert mantissas.min() > 2**41
    assert octaves.tolist() == [0, 10**6 >> 16, 2**45, -(2**45), 0]


@pytest.mark.parametrize("candidates", [1, 2, 1 << 20])
def test_the_largest_lists_fit(candidates: int) -> None:
    ladder = selection.ladder(RHO_UNITS)
    for levels in (np.zeros(candidates, np.int64), np.arange(candidates), -np.arange(candidates)):
        assert 0 <= selection.select(Private(levels), ladder) < candidates


def test_too_little_selects_at_random_and_costs_nothing() -> None:
    ladder = selection.ladder_of_loss(1e-12)
    assert ladder.steps == 0
    assert ladder.loss(ladder.steps) == 0
    draws = {
        selection.select(Private(ladder.levels(np.array([10**9, 0]))), ladder) for _ in range(64)
    }
    assert draws == {0, 1}
    assert selection.preferring_earlier([3, 3], ladder).tolist() == [3, 3]


def test_of_candidates_that_are_as_good_the_first_is_preferred_by_one_scale() -> None:
    ladder = selection.ladder_of_loss(0.25)
    assert selection.preferring_earlier([7, 7, 9], ladder).tolist() == [7, 7 - 5, 9 - 10]
