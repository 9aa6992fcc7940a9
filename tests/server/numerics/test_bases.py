# SPDX-License-Identifier: Apache-2.0
"""Bases against numpy's Legendre series and scipy's B-splines, which compute them in other ways."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial import Legendre
from scipy.interpolate import BSpline

from reticent_server.numerics.bases import bspline, legendre
from support.seeds import seeded

ENDS = [(-1.0, 1.0), (0.0, 15_000.0), (-3.5, -3.25), (1e-6, 1e6)]


@pytest.mark.parametrize(("lower", "upper"), ENDS)
@pytest.mark.parametrize("order", range(11))
def test_polynomials(order: int, lower: float, upper: float) -> None:
    x = np.linspace(lower, upper, 401)
    expected = Legendre.basis(order, domain=[lower, upper])(x)
    np.testing.assert_allclose(legendre(x, order, lower, upper), expected, atol=1e-9)


def test_polynomials_are_orthogonal_on_the_bounds() -> None:
    nodes, weights = np.polynomial.legendre.leggauss(30)
    P = np.array([legendre(5 + 2 * nodes, k, 3.0, 7.0) for k in range(11)])
    gram = (P * weights) @ P.T
    np.testing.assert_allclose(gram, np.diag(2 / (2 * np.arange(11) + 1)), atol=1e-12)


def splines(
    x: np.ndarray, inner: list[float], degree: int, ends: tuple[float, float]
) -> tuple[Any, Any]:
    knots = (*[ends[0]] * (degree + 1), *inner, *[ends[1]] * (degree + 1))
    count = len(inner) + degree + 1
    return knots, np.array([bspline(x, j, knots) for j in range(count)])


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    "inner", [[], [0.5], [-1.0, 0.0, 0.1, 2.5], list(np.linspace(-1.9, 2.9, 20))]
)
def test_splines(inner: list[float], degree: int) -> None:
    x = np.sort(np.concatenate([np.linspace(-2, 3, 301), inner]))
    knots, found = splines(x, inner, degree, (-2.0, 3.0))
    expected = BSpline.design_matrix(x, np.array(knots), degree).toarray().T
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.slow
@given(
    ends=st.tuples(st.floats(-1e6, 1e6), st.floats(1e-9, 1e6)),
    shares=st.lists(st.floats(0.001, 0.999), max_size=20, unique=True),
    degree=st.integers(1, 5),
    places=st.lists(st.floats(-0.5, 1.5), min_size=1, max_size=30),
)
def test_splines_add_up_to_one_and_lie_in_their_range(
    ends: Any, shares: Any, degree: Any, places: Any
) -> None:
    lower, upper = ends[0], ends[0] + ends[1]
    inner = sorted({lower + s * (upper - lower) for s in shares} - {lower, upper})
    x = lower + np.array(places) * (upper - lower)
    _, found = splines(x, inner, degree, (lower, upper))
    assert found.min() >= 0
    assert found.max() <= 1 + 1e-12
    np.testing.assert_allclose(found.sum(axis=0), 1, atol=1e-9)


def test_what_is_outside_counts_as_the_end_and_nan_stays() -> None:
    x = np.array([-np.inf, -9.0, 9.0, np.inf, np.nan])
    _, found = splines(x, [0.0], 3, (-1.0, 1.0))
    np.testing.assert_array_equal(found[0, :4], [1, 1, 0, 0])
    np.testing.assert_array_equal(found[-1, :4], [0, 0, 1, 1])
    assert np.isnan(found[:, 4]).all()
    for order in range(4):
        values = legendre(x, order, -1.0, 1.0)
        np.testing.assert_array_equal(values[:4], [(-1) ** order, (-1) ** order, 1, 1])
        assert np.isnan(values[4])


@pytest.mark.filterwarnings("error")
def test_knots_next_to_each_other_do_no_harm() -> None:
    tiny = np.nextafter(0.0, 1.0)
    x = np.array([-1e300, -1.0, 0.0, tiny, 1.0, 1e300])
    with np.errstate(over="ignore"):
        _, found = splines(x, [0.0, tiny], 3, (-1e300, 1e300))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=0), 1)


def test_a_record_s_value_does_not_depend_on_its_block() -> None:
    x = seeded(0).uniform(-2, 3, 1000)
    _, whole = splines(x, [0.0, 1.0], 3, (-2.0, 3.0))
    _, part = splines(x[137:211], [0.0, 1.0], 3, (-2.0, 3.0))
    np.testing.assert_array_equal(whole[:, 137:211], part)
    assert np.array_equal(legendre(x, 5, -2, 3)[137:211], legendre(x[137:211], 5, -2, 3))
