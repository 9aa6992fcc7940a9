# SPDX-License-Identifier: Apache-2.0
"""Which directions a fit resolves, and what restrictions and reports make of them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.steps import Released
from reticent_server.fitting.identifiability import Directions, any_present, fit_directions
from reticent_server.fitting.public.coordinates import public_coordinates
from reticent_server.fitting.report import intervals, p_values
from reticent_server.fitting.restriction import Restriction
from reticent_server.fitting.whitening import unwhitened
from support.fits.linear_plans import fitted, numerics
from support.fits.regressions import linear_table
from support.seeds import seeded

Q = 3


def whitening() -> Any:
    rng = seeded(0)
    X = np.column_stack([np.ones(2000), rng.normal(size=(2000, Q - 1))])
    return replace(unwhitened(public_coordinates(X), 4.0 * Q), noise=np.full(Q, 1e3))


def directions(
    jacobian: Any, noise: float = 0.01, records: float = 1000.0, *, present: bool = True
) -> Any:
    return fit_directions(
        whitening(),
        np.eye(Q),
        np.asarray(jacobian, dtype=float),
        np.full(Q, noise),
        np.eye(Q),
        records,
        present=present,
    )


def test_what_stands_out_of_the_noise_is_resolved() -> None:
    assert directions(np.eye(Q)).resolved.all()
    assert directions(np.eye(Q), noise=0.5).unresolved == Q
    assert directions(np.diag([1.0, 1.0, 0.01])).unresolved == 1
    assert directions(np.eye(Q), records=10.0).unresolved == Q
    assert directions(np.eye(Q), present=False).unresolved == Q


def test_of_a_collinear_pair_one_direction_is_left() -> None:
    J = np.eye(Q)
    J[1, 2] = J[2, 1] = 1.0
    found = directions(J)
    assert found.unresolved == 1
    back = np.linalg.inv(whitening().transform)  # combinations of u as ones of x̃'s coefficients
    assert found.estimable(np.array([[1.0, 0.0, 0.0]]) @ back.T)
    assert found.estimable(np.array([[0.0, 1.0, 1.0]]) @ back.T)
    assert not found.estimable(np.array([[0.0, 1.0, -1.0]]) @ back.T)


def test_a_direction_without_records_hides_no_axis() -> None:
    """It is never quite along an axis; a record's share of what is known counts along the others
    alone.
    """
    tilted = np.linalg.qr(np.array([[1.0, 0, 0.005], [0, 1, -0.003], [-0.005, 0.003, 1]]))[0]
    for records, unresolved in ((1000.0, 1), (10.0, Q)):
        found = fit_directions(
            whitening(),
            (tilted * np.array([0.9, 0.95, 1e-6])) @ tilted.T,
            (tilted * np.array([0.81, 0.9025, 1e-12])) @ tilted.T,
            np.full(Q, 0.01),
            np.eye(Q),
            records,
            present=True,
        )
        assert found.unresolved == unresolved


def test_few_records_along_an_axis_are_seen_whatever_the_frame() -> None:
    """Of directions that are expected alike, the eigenvectors may be any."""
    turned = np.linalg.qr(np.ones((Q, Q)) + np.eye(Q))[0]
    back = (turned * np.array([1.0, 1.0 + 1e-9, 1.0 + 2e-9])) @ turned.T
    for records, unresolved in ((1000.0, 1), (10_000.0, 0)):
        jacobian, noise = np.diag([1.0, 1.0, 0.01]), np.full(Q, 1e-4)
        found = fit_directions(whitening(), back, jacobian, noise, np.eye(Q), records, present=True)
        assert found.unresolved == unresolved


def test_a_hypothesis_is_estimable_if_all_its_combinations_are() -> None:
    vectors, resolved = np.eye(Q), np.array([True, True, False])
    found = Directions(vectors, resolved)
    assert list(found.flags) == [True, True, False]
    assert found.estimable(np.array([[1.0, 1, 0.5]]))
    assert not found.estimable(np.array([[1.0, 0, 0.5], [1.0, 0, -0.5]]))
    assert found.share(np.array([[1.0, 0, 1.0]])) == pytest.approx(0.5)
    A = np.array([[1.0, 0, 0], [0, 2, 0], [0, 0, 3]])
    np.testing.assert_allclose(found.mapped(A).vectors, A)
    assert found.mapped(A).unresolved == 1


def test_a_count_of_records_is_present_three_deviations_above_0() -> None:
    assert any_present(Released(np.array([31.0]), 10.0))
    assert not any_present(Released(np.array([29.0]), 10.0))


def test_a_restricted_start_keeps_to_its_subspace() -> None:
    rng = seeded(1)
    W, root = rng.normal(size=(2, Q, Q))
    R, C = np.array([[1.0, -1.0, 0.0]]), root @ root.T
    theta, after = Restriction(R, np.array([0.7])).started(rng.normal(size=Q), C, W)
    assert R @ theta == pytest.approx(0.7)
    np.testing.assert_allclose(R @ W.T @ after, 0, atol=1e-9)
    across = np.linalg.solve(W.T, np.array([1.0, 1.0, 0.0]))
    assert across @ np.linalg.pinv(C) @ across > 0


def test_flagged_coefficients_have_neither_interval_nor_p_value() -> None:
    ok, beta, se = np.array([True, False]), np.array([1.0, 2.0]), np.array([0.5, 0.1])
    (low, high), none = intervals(beta, se, 0.95, ok)
    assert none == (None, None)
    assert (low, high) == pytest.approx((1 - 0.979982, 1 + 0.979982), rel=1e-5)
    assert p_values(beta, se, ok) == [pytest.approx(0.0455, abs=1e-4), None]


def test_noise_above_five_sampling_errors_is_flagged() -> None:
    table = linear_table(5_000, 2, seeded(2))
    _, result = fitted(table, numerics(2), 0.02)
    assert not any(result["estimable"])
    assert result["warnings"]


def test_what_is_shown_decides_every_combination_as_the_directions_themselves_do() -> None:
    rng = seeded(4)
    own = Directions(rng.standard_normal((Q, Q)), np.arange(Q) != 1)
    vectors = np.array([direction["vector"] for direction in own.shown]).T
    shown = Directions(vectors, np.array([direction["resolved"] for direction in own.shown]))
    assert shown.unresolved == 1
    for rows in (1, 2):
        R = rng.standard_normal((rows, Q))
        assert shown.share(R) == pytest.approx(own.share(R), rel=1e-7)
    np.testing.assert_allclose(vectors @ vectors.T, own.vectors @ own.vectors.T, rtol=1e-7)
    assert Directions(own.vectors, np.ones(Q, dtype=bool)).shown == []
