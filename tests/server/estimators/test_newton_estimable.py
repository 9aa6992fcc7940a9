"""Which linear combinations of coefficients a fit can tell from none: their rule, and what a release shows."""

import json

import numpy as np
import pytest

import reticent
from reticent._hypotheses import unresolved_share
from reticent_server.accounting.conversions import rho_units
from reticent_server.estimators.newton import plan_linear_regression
from reticent_server.estimators.newton.estimable import Directions
from support_client import release
from support_newton import drive, facts_of, numeric, plain_design, profile_of, query, whole

Y = numeric("y")
UNIT = np.eye(3)


def some(rng=None, q=5, unresolved=2):
    vectors = (rng or np.random.default_rng(0)).normal(size=(q, q))
    return Directions(vectors, np.arange(q) >= unresolved)


def test_a_share_is_that_of_the_variance():
    found, c = some(), np.array([[1.0, -2.0, 0.0, 0.5, 3.0]])
    parts = (c @ found.vectors)[0] ** 2
    assert found.share(c) == pytest.approx(parts[:2].sum() / parts.sum())
    assert list(found.flags) == [found.share(row[None]) <= 0.5 for row in np.eye(5)]


def test_the_share_of_several_rows_is_that_of_their_worst_combination():
    rng, found = np.random.default_rng(1), some()
    R = rng.normal(size=(2, 5))
    angles = np.linspace(0, np.pi, 2000)
    each = [found.share((np.array([np.cos(a), np.sin(a)]) @ R)[None]) for a in angles]
    assert found.share(R) == pytest.approx(max(each), abs=1e-4)
    mixed = np.array([[1e6, 2.0], [0.3, -1e-3]]) @ R
    assert found.share(mixed) == pytest.approx(found.share(R))


def test_a_pair_that_cannot_be_told_apart_has_a_sum_that_can():
    half = np.sqrt(0.5)
    vectors = np.array([[1, 0, 0], [0, half, 10 * half], [0, half, -10 * half]])
    pair = Directions(vectors, np.array([True, True, False]))
    assert list(pair.flags) == [True, False, False]
    assert pair.estimable(np.array([[0, 1.0, 1.0]]))
    assert pair.estimable(np.array([[5, 1.0, 1.0], [1, 0, 0]]))
    assert not pair.estimable(np.array([[0, 1.0, -1.0]]))
    assert not pair.estimable(UNIT[1:])


def test_a_map_of_the_coefficients_maps_the_directions():
    rng, found = np.random.default_rng(2), some()
    A, R = rng.normal(size=(5, 5)), rng.normal(size=(2, 5))
    assert found.mapped(A).share(R) == pytest.approx(found.share(R @ A))


def test_without_an_unresolved_direction_all_is_estimable():
    assert some(unresolved=0).share(np.eye(5)) == 0
    assert not some(unresolved=5).flags.any()


def test_the_client_has_the_same_rule():
    rng, found = np.random.default_rng(3), some()
    for k in (1, 2, 4):
        R = rng.normal(size=(k, 5))
        assert unresolved_share(R, found.shown) == pytest.approx(found.share(R))


def fitted(table, columns, epsilon):
    facts = facts_of(len(table["y"]), [*columns, Y], profile_of(table, [*columns, Y]))
    plan = plan_linear_regression(
        facts, plain_design(columns, Y), query(), rho_units(epsilon, 1e-6)
    )
    result = drive(plan.run(), whole(table)).result
    return reticent.RegressionResults(release(result=json.loads(json.dumps(result))))


def collinear(rng, n=5000):
    a = rng.normal(size=n)
    return {"a": a, "twice": 2 * a, "y": 1 + 3 * a + 0.5 * rng.normal(size=n)}


def flat(rng, n=5000):
    a = rng.normal(size=n)
    return {"a": a, "flat": np.full(n, 3.0), "y": 1 + 3 * a + 0.5 * rng.normal(size=n)}


A = numeric("a")
CASES = [
    (collinear, [A, numeric("twice")], "a + 2*twice", 3.0, ["a", "twice", "a = twice", "a, twice"]),
    (
        flat,
        [A, numeric("flat", 0, 10)],
        "Intercept + 3*flat",
        1.0,
        ["Intercept", "flat", "a, flat"],
    ),
]


@pytest.mark.parametrize(("make", "columns", "known", "value", "unknown"), CASES)
def test_a_released_fit_tests_what_it_can(make, columns, known, value, unknown):
    """But by chance: noise passes for information some times in a hundred."""
    rng, right = np.random.default_rng(4), 0
    for _ in range(12):
        fit = fitted(make(rng), columns, 2.0)
        true, false = (fit.wald_test(f"{known} = {v}").pvalue for v in (value, value + 1))
        assert true > 1e-7
        assert false < 1e-7
        right += all(refused(fit, text) for text in unknown)
    assert right >= 9


def refused(fit, text):
    try:
        fit.wald_test(text)
    except reticent.NotEstimable:
        return True
    return False


@pytest.mark.audit
@pytest.mark.parametrize(("make", "columns", "known", "value", "unknown"), CASES)
def test_of_what_can_be_tested_tests_keep_their_level(make, columns, known, value, unknown):
    rng, epsilon = np.random.default_rng(5), 1.0
    found = [
        fitted(make(rng), columns, epsilon).wald_test(f"{known} = {value}").pvalue
        for _ in range(400)
    ]
    assert 0.01 < np.mean(np.array(found) < 0.05) < 0.09
