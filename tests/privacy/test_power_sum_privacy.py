# SPDX-License-Identifier: Apache-2.0
"""Sums of powers, attacked: all pairs of records on a fine grid, and one that gives nothing, in
exact integers.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.steps import PowerSum
from reticent_server.kinds.location_scale.maps import JACOBIAN, MEAT, SCORE
from reticent_server.kinds.mean.plan import _COUNTED, _POWERS
from reticent_server.mechanisms import noisy_sum, power_sum
from support.attacks.privacy_losses import loss
from support.seeds import seeded

RHO = RHO_UNITS // 50
USED = {
    "mean": _POWERS,
    "masked mean": _COUNTED,
    "score": SCORE,
    "score and meat": (*SCORE, *MEAT),
    "Jacobian": JACOBIAN,
}
OTHERS = {
    "far from the ends": ((0.0, 1.0), (0.0, 0.0, 2.5)),
    "nothing is farthest": ((2.0,), (0.0, 1.0)),
    "a single power": ((0.0, 0.0, 0.0, 1.0),),
    "small": ((0.0, 1e-9), (0.0, 0.0, 3e-9)),
}
GRID = np.linspace(-1, 1, 1001)


def points(part: Any, numbers: Any) -> Any:
    """(size, rows) each number's exact integer contribution."""
    return np.array([noisy_sum.encode(part, np.array([t])) for t in numbers]).T.astype(float)


def farthest(part: Any, numbers: Any) -> float:
    q = points(part, numbers)
    squares = (q * q).sum(axis=0)
    return float(np.sqrt((squares[:, None] + squares - 2 * q.T @ q).max()))


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", [*USED, *OTHERS])
def test_all_pairs_are_within_the_sensitivity_and_one_attains_it(name: str) -> None:
    part = PowerSum((USED | OTHERS)[name], RHO)
    worst = farthest(part, [*GRID, np.nan]) / noisy_sum.sensitivity(part)
    assert 0.9997 < worst <= 1


@pytest.mark.parametrize("name", USED)
def test_what_is_released_beside_the_first_power_costs_nothing(name: str) -> None:
    """The whole has the sensitivity of t alone, up to what the search for it leaves open."""
    alone = power_sum.granule(PowerSum(((0.0, 1.0),), RHO))
    assert power_sum.granule(PowerSum(USED[name], RHO)) <= alone * (1 + 2e-4)


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("factor", [1.02, 1.5])
@pytest.mark.parametrize("name", ["masked mean", "score and meat"])
def test_factors_have_no_room_left(name: str, factor: float) -> None:
    """The largest round factors were taken: the squares' of a counted mean, and of the meat those
    of both together.
    """
    polynomials = USED[name]
    larger = tuple(
        tuple(factor * c for c in p) if len(p) > (4 if "meat" in name else 2) else p
        for p in polynomials
    )
    least = {1.02: 0.99, 1.5: 1.01}[factor]
    assert power_sum.distance(larger) > least * power_sum.distance(polynomials)


@pytest.mark.parametrize("unit_rows", [1, 3])
def test_the_bound_is_attained_by_all_rows_of_a_unit(unit_rows: int) -> None:
    part = PowerSum((*SCORE, *MEAT), RHO, unit_rows)
    rest = np.array([0.2, -0.7])
    table, neighbour = (np.append(np.full(unit_rows, t), rest) for t in (-5.0, 5.0))
    assert 0.999 * part.rho <= loss(part, table, neighbour) <= part.rho


def test_what_is_no_number_gives_nothing_and_what_is_too_large_gives_the_end() -> None:
    part = PowerSum(_COUNTED, RHO)
    nothing, end = np.array([np.nan, np.inf, -np.inf]), np.array([-1e300, -1.0])
    np.testing.assert_array_equal(noisy_sum.encode(part, nothing), 0)
    first, second = points(part, end).T
    np.testing.assert_array_equal(first, second)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    arrays(float, 5, elements=st.floats(allow_nan=True, allow_infinity=True, width=64)),
    st.floats(allow_nan=True, allow_infinity=True, width=64),
)
def test_no_pair_of_neighbours_loses_more_than_is_charged(table: Any, record: Any) -> None:
    for polynomials in USED.values():
        part = PowerSum(polynomials, RHO)
        assert loss(part, table, np.append(record, table[1:])) <= part.rho


def test_sums_are_the_polynomials_sums() -> None:
    rng = seeded(0)
    t = rng.uniform(-1, 1, 500)
    for polynomials in USED.values():
        part = PowerSum(polynomials, RHO)
        exact = [np.polynomial.polynomial.polyval(t, p).sum() for p in polynomials]
        found = noisy_sum.encode(part, t) * power_sum.granule(part)
        np.testing.assert_allclose(found, exact, atol=500 * power_sum.granule(part))


def test_powers_whose_rounding_the_proof_does_not_count_are_refused() -> None:
    with pytest.raises(ValueError, match="fourth"):
        power_sum.distance(((0.0, 0.0, 0.0, 0.0, 0.0, 1.0),))


def test_the_bound_is_found_with_polynomials_that_nearly_cancel() -> None:
    """T₄ and T₃: the largest coefficients that a polynomial of its size can have."""
    part = PowerSum(((1.0, 0.0, -8.0, 0.0, 8.0), (0.0, -3.0, 0.0, 4.0)), RHO)
    worst = farthest(part, [*GRID, np.nan]) / noisy_sum.sensitivity(part)
    assert 0.9997 < worst <= 1
