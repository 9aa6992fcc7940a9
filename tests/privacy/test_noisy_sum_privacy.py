# SPDX-License-Identifier: Apache-2.0
"""The privacy suite of noisy sums: what is released, attacked.

The loss of a pair of neighbours is computed from their integer sums and from the scales of the
noise that `release` draws, so that half the noise, a wrong sensitivity or a missing clip all show.
"""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.private import Private
from reticent_server.domain.steps import CountSum, GramSum, PowerSum, VectorSum
from reticent_server.mechanisms import _sampler, noisy_sum
from support.attacks.privacy_losses import loss
from support.seeds import seeded

RHO = RHO_UNITS // 50
LUCK = 1e-10  # of a test on real noise


wild = st.floats(allow_nan=True, allow_infinity=True, width=64)
tame = st.floats(-3, 3)


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", [VectorSum, GramSum])
@pytest.mark.parametrize("elements", [wild, tame])
def test_no_pair_of_neighbours_loses_more_than_is_charged(kind: Any, elements: Any) -> None:
    part = kind(size=3, clip=1.7, rho=RHO)

    @settings(max_examples=150, deadline=None)
    @given(arrays(float, (3, 5), elements=elements), arrays(float, (3, 1), elements=elements))
    def search(table: Any, record: Any) -> None:
        neighbour = np.concatenate([record, table[:, 1:]], axis=1)
        assert loss(part, table, neighbour) <= part.rho

    search()


FARTHEST = {
    "vectors": (VectorSum(2, 1.0, RHO), (5.0, 0.0), (-5.0, 0.0)),
    "vectors, aslant": (VectorSum(2, 1.0, RHO), (3.0, 4.0), (-3.0, -4.0)),
    "Gram, on the diagonal": (GramSum(2, 1.0, RHO), (5.0, 0.0), (0.0, 5.0)),
    "Gram, off the diagonal": (GramSum(2, 1.0, RHO), (5.0, 5.0), (5.0, -5.0)),
    "Gram, both": (GramSum(2, 1.0, RHO), (2.0, 1.0), (1.0, -2.0)),
    "counts": (CountSum(4, RHO), 1.0, 3.0),
    "a count": (CountSum(1, RHO), 0.0, -1.0),
}


@pytest.mark.parametrize("unit_rows", [1, 3, 40])
@pytest.mark.parametrize("name", FARTHEST)
def test_the_bound_is_attained_by_the_farthest_records_of_a_unit(name: str, unit_rows: int) -> None:
    """All rows of a unit move as far as one record can: each kind of entry, and its noise, is
    needed in full.
    """
    part, here, there = FARTHEST[name]
    part = replace(part, unit_rows=unit_rows)
    tables = []
    for record in (here, there):
        rest = 0.3 if isinstance(part, VectorSum | GramSum) else 0.0
        column = np.array(record).reshape(-1, 1)
        table = np.concatenate(
            [np.tile(column, unit_rows), np.full((len(column), 2), rest)], axis=1
        )
        tables.append(table if isinstance(part, VectorSum | GramSum) else table[0])
    assert 0.999 * part.rho <= loss(part, *tables) <= part.rho


@pytest.mark.parametrize("kind", [VectorSum, GramSum])
def test_no_other_pair_of_directions_loses_more(kind: Any) -> None:
    part = kind(size=2, clip=1.0, rho=RHO)
    worst = 0.0
    for a, b in product(np.linspace(0, np.pi, 13), repeat=2):
        table = 100 * np.array([[np.cos(a)], [np.sin(a)]])
        neighbour = -100 * np.array([[np.cos(b)], [np.sin(b)]])
        worst = max(worst, loss(part, table, neighbour))
    assert 0.98 * part.rho <= worst <= part.rho


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "part",
    [
        *(VectorSum(4, 2.0, RHO), GramSum(4, 2.0, RHO), CountSum(4, RHO), CountSum(1, RHO)),
        PowerSum(((1.0,), (0.0, 1.0), (0.0, 0.0, 1.4)), RHO),
    ],
)
@pytest.mark.real_noise
def test_noise_has_the_scale_that_is_reported_and_no_other(part: Any) -> None:
    """By luck less than 6·10⁻¹⁰ over all of its six variances, of 1500 draws at least; at 1.3 times
    the scale one is accepted less than once in 10¹⁵.
    """
    shape = (part.size, part.size) if isinstance(part, GramSum) else None
    sums = np.zeros(shape or (getattr(part, "size", None) or part.bins,), dtype=np.int64)
    draws = [noisy_sum.release(part, Private(sums)) for _ in range(1500)]
    values = np.array([d.values for d in draws])
    groups = {1.0: values.reshape(1500, -1)}
    if isinstance(part, GramSum):
        diagonal = np.eye(part.size, dtype=bool)
        upper = np.triu(~diagonal)
        groups = {1.0: values[:, diagonal], 1 / np.sqrt(2): values[:, upper]}
    for factor, group in groups.items():
        sd = draws[0].sd * factor
        assert _variance_p_value(group, sd) > LUCK
        assert _variance_p_value(group, 0.7 * sd) < LUCK
        assert _variance_p_value(group, 1.3 * sd) < LUCK


def _variance_p_value(group: Any, sd: Any) -> Any:
    statistic = (group**2).sum() / sd**2
    return 2 * min(stats.chi2.cdf(statistic, group.size), stats.chi2.sf(statistic, group.size))


@pytest.mark.parametrize(
    "part",
    [
        *(VectorSum(3, 2.0, RHO), GramSum(3, 2.0, RHO), CountSum(3, RHO)),
        PowerSum(((0.0, 1.0),), RHO, unit_rows=3),
    ],
)
def test_what_is_billed_is_what_the_sampler_says(part: Any) -> None:
    billed = _sampler.DiscreteGaussian(noisy_sum.scale(part)).rho(noisy_sum.sensitivity(part))
    assert billed <= part.rho / RHO_UNITS <= billed * (1 + 1e-6)


@pytest.mark.slow
@pytest.mark.real_noise
def test_laplace_noise_has_its_scale_and_no_other() -> None:
    """By the number of zeros among 20,000 draws, P(0) = tanh(1/(2b)): by luck once in 10¹⁰ runs; .7
    b and 1.3 b have their zeros 14 standard deviations away, or more.
    """
    b, draws = 3.0, 20_000
    zeros = int(np.sum(_sampler.Laplace(b).add(np.zeros(draws, dtype=np.int64)) == 0))
    for factor, right in ((1.0, True), (0.7, False), (1.3, False)):
        expected = float(np.tanh(1 / (2 * factor * b)))
        assert (stats.binomtest(zeros, draws, expected).pvalue > LUCK) == right


@pytest.mark.real_noise
@pytest.mark.parametrize("value", [2**61 + 1, -(2**61) - 1, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("noise", [_sampler.DiscreteGaussian(5.0), _sampler.Laplace(5.0)])
def test_a_sum_that_would_come_back_without_noise_is_refused(noise: Any, value: Any) -> None:
    """The size of the least int64 is negative: both signs have to be compared."""
    with pytest.raises(_sampler.SamplerError):
        noise.add(np.array([0, value], dtype=np.int64))


@pytest.mark.parametrize("noise", [_sampler.DiscreteGaussian, _sampler.Laplace])
@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, 2.0**61])
def test_a_scale_that_is_no_scale_is_refused(noise: Any, scale: float) -> None:
    with pytest.raises(_sampler.SamplerError):
        noise(scale)


@pytest.mark.audit
def test_black_box_audit_of_a_released_vector() -> None:
    """10⁵ draws a neighbour: the event is chosen on one half, Clopper–Pearson on the other."""
    part = VectorSum(1, 1.0, rho=int(0.02436 * RHO_UNITS))
    samples = [_draws(part, value, 100_000) for value in (1.0, -1.0)]
    assert _epsilon_lower_bound(*samples, delta=1e-6) <= 1.0
    half = VectorSum(1, 1.0, rho=int(4 * 0.02436 * RHO_UNITS))
    samples = [_draws(half, value, 100_000) for value in (1.0, -1.0)]
    assert _epsilon_lower_bound(*samples, delta=1e-6) > 0.5


def _draws(part: Any, value: Any, number: Any) -> Any:
    sums = noisy_sum.encode(part, np.array([[value]]))
    return np.array([noisy_sum.release(part, Private(sums)).values[0] for _ in range(number)])


def _epsilon_lower_bound(first: Any, second: Any, delta: Any, level: float = 1e-4) -> Any:
    half = len(first) // 2
    thresholds = np.quantile(np.concatenate([first[:half], second[:half]]), np.linspace(0, 1, 101))
    p = np.array([(first[:half] > t).mean() for t in thresholds[5:-5]])
    q = np.array([(second[:half] > t).mean() for t in thresholds[5:-5]])
    threshold = thresholds[5:-5][np.argmax(np.log(p / q))]
    hits, misses = (first[half:] > threshold).sum(), (second[half:] > threshold).sum()
    p_low = stats.beta.ppf(level, hits, half - hits + 1)
    q_high = stats.beta.ppf(1 - level, misses + 1, half - misses)
    return np.log((p_low - delta) / q_high)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 11, 15, 16, 24, 25, 27])
@pytest.mark.parametrize("signed", [False, True])
def test_gram_sums_are_exact_however_they_are_cut(size: int, signed: bool) -> None:
    """Integers as long as records may be, of several pieces of a block and the rest of one."""
    rng = seeded(size)
    most = int(noisy_sum.norm_limit(GramSum(size, 1.0, RHO)) / np.sqrt(size))
    q = rng.integers(-most, most + 1, (size, 3 * 4096 + 5))
    q[:, rng.random(q.shape[1]) < 0.5] = most
    signs = rng.choice([-1, 1], q.shape[1])
    part = GramSum(size, 1.0, RHO, signed=signed)
    total = noisy_sum.added(part, q.astype(np.float64), signs.astype(np.float64))
    assert np.array_equal(total, (q * signs) @ q.T if signed else q @ q.T)
