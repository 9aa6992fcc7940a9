"""Early steps on a subset of the rows: for large tables only, paid for as before, and as accurate."""

from dataclasses import replace

import numpy as np
import pytest

from reticent_server.domain.design import Compare
from reticent_server.domain.row_subset import RowSubset
from reticent_server.domain.steps import SumStep
from reticent_server.estimators.newton import plan_linear_regression
from reticent_server.estimators.newton.early_rows import early_fractions, early_stride
from support_newton import (
    HUGE_RHO,
    drive,
    facts_of,
    linear_table,
    numeric,
    plain_design,
    profile_of,
    query,
    totals,
    whole,
)

N, P = 1 << 17, 3
COLUMNS = [numeric(f"x{j}") for j in range(P)]
Y = numeric("y")
ALL_ROWS = {"stride": 1}


def table(order=None, noise=0.5):
    found = linear_table(N, P, np.random.default_rng(5), noise)
    if order is None:
        return found
    places = np.argsort(found[order])
    return {name: values[places] for name, values in found.items()}


def planned(data, rho=HUGE_RHO, n=None, **design):
    profile = profile_of(data, [*COLUMNS, Y])
    facts = facts_of(n or N, [*COLUMNS, Y], profile)
    return plan_linear_regression(facts, plain_design(COLUMNS, Y, **design), query(), rho)


def on_all_rows(plan):
    return replace(plan, settings=replace(plan.settings, stride=1))


def test_small_tables_are_planned_as_before():
    data = table()
    plan = planned(data, n=N - 1)
    assert plan.settings.stride == 1
    assert all(plan.settings.subset(t) is None for t in range(plan.settings.steps))


@pytest.mark.parametrize(
    ("eta", "n", "steps", "stride"),
    [
        (1e-5, (1 << 17) - 1, 6, 1),
        (1e-5, 1 << 17, 6, 2),
        (1e-4, 10**6, 6, 8),
        (1e-6, 10**9, 6, 8),
        (1e-6, 10**9, 4, 1),
        (1e-3, 10**6, 6, 4),
        (1e-2, 10**6, 6, 1),
    ],
)
def test_the_stride_follows_rows_and_noise(eta, n, steps, stride):
    assert early_stride(eta, 11, 0.7, n, steps) == stride


def test_all_of_rho_is_given_out():
    for steps in (5, 6):
        assert sum(early_fractions(steps)) == pytest.approx(1)
    rho = 10**16
    for where in (None, Compare("x0", "<", 1.0)):
        plan = planned(table(), rho, where=where)
        assert plan.settings.stride > 1
        trace = drive(plan.run(), whole(table()))
        assert sum(part.rho for step in trace.steps for part in step.parts) == rho
        assert len(trace.steps) == plan.passes


def test_only_the_early_steps_are_on_a_subset():
    trace = drive(planned(table()).run(), whole(table()))
    subsets = [step.subset for step in trace.steps]
    assert subsets == [RowSubset(2)] * (len(subsets) - 3) + [None] * 3
    sums: list[SumStep] = trace.steps[:2]
    both = [totals(sums[k], whole(table())) for k in (0, 1)]
    assert both[1][0].sum() == RowSubset(2).count(N)


@pytest.mark.parametrize("order", [None, "y", "x0"])
def test_the_fit_is_that_on_all_rows(order):
    """Whatever the order of the rows: within a small part of a standard error, without noise."""
    data = table(order)
    plan = planned(data)
    found = drive(plan.run(), whole(data)).result
    reference = drive(on_all_rows(plan).run(), whole(data)).result
    se = np.array(reference["standard_errors"])
    off = (np.array(found["coefficients"]) - reference["coefficients"]) / se
    assert np.abs(off).max() < 0.02
    np.testing.assert_allclose(found["standard_errors"], se, rtol=2e-3)
    np.testing.assert_allclose(found["scale"], reference["scale"], rtol=2e-3)


def test_masks_that_leave_rows_out_unevenly():
    """All rows in use stand together: the share in use is the table's in the end."""
    data = table("x0")
    plan = planned(data, where=Compare("x0", "<", 0.5))
    found = drive(plan.run(), whole(data)).result
    assert found["records_in_use"] == pytest.approx((data["x0"] < 0.5).sum(), abs=1)
    reference = drive(on_all_rows(plan).run(), whole(data)).result
    se = np.array(reference["standard_errors"])
    off = (np.array(found["coefficients"]) - reference["coefficients"]) / se
    assert np.abs(off).max() < 0.05


def test_reported_noise_is_the_noise():
    """Studentised deviations from the fit without noise, over the coefficients of several runs."""
    data = table(noise=0.05)
    target = np.array(drive(planned(data).run(), whole(data)).result["coefficients"])
    plan = planned(data, 3 * 10**9)
    assert plan.settings.stride == 2
    errors = []
    for _ in range(4):
        found = drive(plan.run(), whole(data)).result
        se = np.array(found["privacy_standard_errors"])
        errors.extend((np.array(found["coefficients"]) - target) / se)
    assert np.mean(np.square(errors)) < 6  # mean 1, sd .35: below 10⁻⁶ for a χ²(16)/16
    assert np.mean(np.square(errors)) > 0.01
