# SPDX-License-Identifier: Apache-2.0
"""The exact profile of counts against mpmath, all events of two cells, and dp-accounting."""

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from reticent_server.accounting import exact_counts
from reticent_server.accounting.exact_counts import Uncertified, delta_bound

CASES = [(0.3, 8.0), (1.36, 4.0), (4.8, 2.0), (18.0, 1.0), (60.0, 0.5), (900.0, 0.1), (2.0, 0.0)]


def weight(z: Any, variance: float) -> Any:
    return mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * mpmath.mpf(variance)))


def true_delta(variance: float, epsilon: float, shift: int) -> Any:
    """Σ_z max(0, p(z) − e^ε p(z + d)), over every z whose probability is above 10⁻⁷⁰."""
    with mpmath.workdps(90):
        reach = int(19 * variance**0.5) + 30
        law = {z: weight(z, variance) for z in range(-reach, reach + shift + 1)}
        grown = mpmath.exp(mpmath.mpf(epsilon))
        differences = (law[z] - grown * law[z + shift] for z in range(-reach, reach + 1))
        return mpmath.fsum(d for d in differences if d > 0) / mpmath.fsum(law.values())


def of_two_cells(variance: float, epsilon: float) -> float:
    """The same of two cells, over all pairs of outputs, in floats."""
    z = np.arange(-60, 61)
    p = np.exp(-(z.astype(float) ** 2) / (2 * variance))
    p /= p.sum()
    here, there = np.outer(p[1:-1], p[1:-1]), np.outer(p[2:], p[:-2])
    return float(np.maximum(here - np.exp(epsilon) * there, 0).sum())


def bound(variance: float, epsilon: float, bins: int = 1, rows: int = 1) -> Any:
    found = delta_bound(Fraction(variance), Fraction(epsilon), bins=bins, rows=rows)
    return mpmath.mpf(str(found))


@pytest.mark.parametrize(("variance", "epsilon"), CASES)
def test_the_bound_of_a_count_is_above_its_delta_and_next_to_it(
    variance: float, epsilon: float
) -> None:
    with mpmath.workdps(90):
        exact = true_delta(variance, epsilon, 1)
        assert exact < bound(variance, epsilon) < exact * (1 + mpmath.mpf("1e-30"))


@pytest.mark.parametrize(("variance", "epsilon"), CASES)
def test_of_a_unit_with_rows_the_worst_number_of_them_counts(
    variance: float, epsilon: float
) -> None:
    with mpmath.workdps(90):
        exact = max(true_delta(variance, epsilon, d) for d in (1, 2, 3))
        assert exact < bound(variance, epsilon, rows=3) < exact * (1 + mpmath.mpf("1e-30"))


@pytest.mark.parametrize(("variance", "epsilon"), [case for case in CASES if case[0] < 20])
def test_of_a_table_all_events_of_two_cells_are_within_it(variance: float, epsilon: float) -> None:
    exact = max(of_two_cells(variance, epsilon), float(true_delta(variance, epsilon, 1)))
    room = 1e-9 if variance > 4 else 4e-3
    assert exact * (1 - 1e-9) <= float(bound(variance, epsilon, bins=3)) <= exact * (1 + room)


@pytest.mark.parametrize(("variance", "epsilon"), [(4.8, 2.0), (18.0, 1.0)])
def test_dp_accounting_agrees(variance: float, epsilon: float) -> None:
    law = pld.from_discrete_gaussian_mechanism(variance**0.5, 1, value_discretization_interval=1e-5)
    other = law.get_delta_for_epsilon(epsilon)
    assert float(bound(variance, epsilon)) == pytest.approx(other, rel=1e-3)


@pytest.mark.parametrize(
    ("variance", "epsilon", "bins", "rows"),
    [(1.0, 1.0, 2, 2), (1e12, 1e-6, 1, 1), (1e6, 1e3, 1, 1)],
)
def test_out_of_reach_nothing_is_certified(
    variance: float, epsilon: float, bins: int, rows: int
) -> None:
    """Tables of units with several rows; sums that are too long; exponents that are too large."""
    with pytest.raises(Uncertified):
        bound(variance, epsilon, bins, rows)


def test_what_is_beyond_the_last_term_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """With sums that end early the bound stays one."""
    exact_counts._weights.cache_clear()
    exact_counts._most_norm.cache_clear()
    monkeypatch.setattr(exact_counts, "_NEGLIGIBLE", exact_counts.Decimal("0.2"))
    try:
        for variance, epsilon in ((4.8, 2.0), (18.0, 1.0)):
            assert bound(variance, epsilon) > true_delta(variance, epsilon, 1)
            assert bound(variance, epsilon, bins=2) > of_two_cells(variance, epsilon)
    finally:
        exact_counts._weights.cache_clear()
        exact_counts._most_norm.cache_clear()
