# SPDX-License-Identifier: Apache-2.0
"""The median by smooth sensitivity: exact hockey-sticks of neighbours, and the printed
constants.
"""

from collections.abc import Iterator
from functools import cache, partial
from itertools import product
from math import log
from typing import Any

import numpy as np
import pytest
from scipy import stats

from reticent_server.domain.columns import Lattice, SmoothMedian
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS
from reticent_server.domain.private import Private
from reticent_server.mechanisms import _sampler, smooth_median
from reticent_server.numerics.order_statistics import quartile_ranks
from support.seeds import seeded

DELTA = 1e-6
SIZE = 2**24
LATTICE = Lattice(0.0, 1.0, SIZE)


def log_laplace(y: Any, centre: Any, b: Any) -> Any:
    """Log probabilities of a discrete Laplace law at whole numbers y."""
    return np.log(np.tanh(1 / (2 * b))) - np.abs(y - centre) / b


def delta_of(first: Any, second: Any, epsilon: Any) -> float:
    """Σ (P − e^ε P′)_+ for two (centre, scale), exactly but for what lies beyond 45 scales."""
    reach = int(45 * max(first[1], second[1]))
    y = np.arange(-reach, reach + SIZE // 8, dtype=float)
    p, q = (log_laplace(y, *law) for law in (first, second))
    return float(np.where(p > q + epsilon, np.exp(p) - np.exp(epsilon + q), 0.0).sum())


def worst_pair(epsilon: Any, beta: Any) -> tuple[Any, Any]:
    """The two laws of neighbours with the largest shift and the largest ratio of scales."""
    b = smooth_median.SMALLEST_SCALE
    return (0, b * np.exp(beta)), (int(epsilon * b / 2), b)


def beta_of(epsilon: Any) -> Any:
    return smooth_median.smoothness(int(epsilon * EPSILON_UNITS), int(DELTA * DELTA_UNITS))


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0, 12.0, 20.0])
def test_the_worst_pair_is_within_delta_and_close_to_it(epsilon: float) -> None:
    first, second = worst_pair(epsilon, beta_of(epsilon))
    assert 0.8 * DELTA < delta_of(first, second, epsilon) <= DELTA
    assert delta_of(second, first, epsilon) <= DELTA


@pytest.mark.slow
def test_the_printed_constants_fail_where_ours_holds() -> None:
    """ln(1/δ), as printed, breaks at ε = 12, where ln(2/δ) holds; that breaks at ε = 20."""
    printed, usual = ((lambda e, a=a: e / (2 * log(a / DELTA))) for a in (1, 2))
    assert delta_of(*worst_pair(12.0, printed(12.0)), 12.0) > 1.1 * DELTA
    assert delta_of(*worst_pair(12.0, usual(12.0)), 12.0) <= DELTA
    assert delta_of(*worst_pair(20.0, usual(20.0)), 20.0) > 2 * DELTA


def part_of(epsilon: Any) -> SmoothMedian:
    return SmoothMedian(LATTICE, int(epsilon * EPSILON_UNITS), int(DELTA * DELTA_UNITS))


def law(part: Any, table: Any) -> tuple[Any, Any]:
    """(median, scale) as they are used for a table of lattice steps."""
    ordered = np.sort(np.array(table, dtype=float))
    _, h, _ = quartile_ranks(len(ordered))
    return int(ordered[h - 1]), smooth_median.scale(part, ordered)


def neighbours() -> Iterator[Any]:
    values = [0, 5, 2**12, 2**20, SIZE]
    for table in product(values, repeat=4):
        for value in values:
            yield table, (value, *table[1:])
    rng = seeded(6)
    for _ in range(3000):
        table = np.rint(2.0 ** rng.uniform(0, 24, 25))
        other = table.copy()
        other[0] = rng.choice([0.0, SIZE, table[3]])
        yield tuple(table), tuple(other)


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_shift_and_ratio_of_every_pair_are_what_the_proof_needs(epsilon: float) -> None:
    part, beta = part_of(epsilon), beta_of(epsilon)
    shifts, ratios, known = [], [], cache(partial(law, part))
    for a, b in neighbours():
        (m, scale), (m_, scale_) = known(a), known(b)
        shifts.append(abs(m - m_) / (epsilon * min(scale, scale_) / 2))
        ratios.append(abs(log(scale / scale_)) / beta)
    assert len(shifts) > 5000
    assert 0.9 < max(shifts) <= 1
    assert 0.9 < max(ratios) <= 1


def test_what_gets_the_noise_is_the_median_whose_sensitivity_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_sampler.Laplace, "add", lambda self, values: values)
    part = part_of(1.0)
    for n in range(1, 12):
        table = seeded(n).integers(0, SIZE, n).astype(float)
        assert smooth_median.release(part, Private(table[None, :])).values == law(part, table)[0]


def scale_p_value(z: Any) -> Any:
    """Two-sided: the sum of n sizes of a Laplace law of scale 1 is Gamma(n)."""
    F = stats.gamma(len(z)).cdf(np.abs(z).sum())
    return 2 * min(F, 1 - F)


@pytest.mark.slow
def test_the_noise_has_that_scale_and_no_other() -> None:
    part = part_of(1.0)
    table = np.linspace(SIZE / 2 - 2e5, SIZE / 2 + 2e5, 501)
    median, scale = law(part, np.rint(table))
    draws = [smooth_median.release(part, Private(table[None, :])).values[0] for _ in range(2500)]
    z = (np.array(draws) - median) / scale
    assert stats.kstest(z, stats.laplace.cdf).pvalue > 1e-7
    assert scale_p_value(z) > 1e-7
    for factor in (0.7, 1.3):
        assert scale_p_value(z / factor) < 1e-12
    assert smooth_median.cost(part).rho == EPSILON_UNITS * 500
    assert _sampler.Laplace(scale).epsilon(1) == pytest.approx(1 / scale)


@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 1.0, 100.0])
def test_no_budget_makes_more_noise_than_whole_numbers_hold(epsilon: float) -> None:
    units = int(epsilon * EPSILON_UNITS)
    bits = smooth_median.largest_bits(units)
    assert 20 <= bits <= 46
    assert 2 * 2.0**bits / epsilon < 2**60
