"""The parametric bootstrap's synthetic table: its noise-free fit is known, whatever the weights."""

import numpy as np
import pytest

from reticent_server.accounting.conversions import rho_units
from reticent_server.estimators.newton import plan_linear_regression
from reticent_server.estimators.newton.bootstrap import NOISY, synthetic_table, widening
from reticent_server.estimators.newton.recipe import Newton
from reticent_server.estimators.newton.target import noise_free_fit
from reticent_server.numerics.public_random import public_generator
from support_newton import (
    boolean,
    drive,
    facts_of,
    linear_table,
    numeric,
    plain_design,
    profile_of,
    query,
    whole,
)

Y = numeric("y", -100, 100)


def fitted(n, epsilon):
    rng = np.random.default_rng(1)
    table = linear_table(n, 3, rng) | {"d": (rng.random(n) < 0.1).astype(float)}
    columns = [*(numeric(f"x{j}", -10, 10) for j in range(3)), boolean("d")]
    facts = facts_of(n, [*columns, Y], profile_of(table, [*columns, Y]))
    plan = plan_linear_regression(
        facts, plain_design(columns, Y), query(), rho_units(epsilon, 1e-6)
    )
    newton = Newton(plan.coding, plan.settings, plan.sizes)
    return newton, drive(newton.fit(), whole(table)).result


def test_the_noise_free_fit_is_the_released_one_whatever_the_weights():
    newton, fit = fitted(3_000, 4.0)
    table = synthetic_table(newton, fit, public_generator("a"))
    solved = noise_free_fit(table.coding, newton.settings, table.block).fit
    np.testing.assert_allclose(solved.coefficients, table.target, atol=1e-9)
    columns = table.block.columns
    names = [name for name in columns if name != "y"]
    X = np.column_stack([np.ones(table.block.rows), *(columns[name] for name in names)])
    for w in (np.ones(len(X)), 1 / (1 + np.sum(X**2, axis=1))):
        found = np.linalg.solve((X.T * w) @ X, X.T @ (w * columns["y"]))
        np.testing.assert_allclose(found, table.target, atol=1e-9)


@pytest.mark.parametrize(("n", "epsilon", "noisy"), [(20_000, 4.0, False), (1_500, 0.3, True)])
def test_it_widens_only_where_there_is_noise(n, epsilon, noisy):
    newton, fit = fitted(n, epsilon)
    assert (newton.settings.eta > NOISY) is noisy
    factor = widening(newton, fit, public_generator("a"))
    assert factor == widening(newton, fit, public_generator("a"))
    assert factor >= 1
    assert (factor > 1) is noisy
