"""Logistic regression's early steps on a subset of the rows: for large tables, and as accurate."""

from dataclasses import replace

import numpy as np
import pytest

from reticent_server.domain.design import Compare
from reticent_server.domain.row_subset import RowSubset
from support_glm import glm_table, planned, slopes
from support_newton import drive, whole

N = 1 << 17
QUIET = 10**18


def table(order=None, n=N):
    found = glm_table("binomial", n, np.random.default_rng(8), p=2)
    places = np.arange(n) if order is None else np.argsort(found[order], kind="stable")
    return {name: values[places] for name, values in found.items()}


def on_all_rows(plan):
    return replace(plan, settings=replace(plan.settings, stride=1))


def test_small_tables_and_other_families_are_planned_as_before():
    assert planned(table(n=N - 8), slopes(2), "binomial", QUIET).settings.stride == 1
    other = glm_table("poisson", N, np.random.default_rng(8), p=2)
    assert planned(other, slopes(2), "poisson", QUIET).settings.stride == 1


def test_noise_keeps_early_steps_on_all_rows():
    assert planned(table(), slopes(2), "binomial", 10**6).settings.stride == 1


@pytest.mark.parametrize("order", [None, "y"])
@pytest.mark.parametrize("where", [None, Compare("x0", "<", 0.5)])
def test_the_fit_is_that_on_all_rows(order, where):
    data = table(order)
    plan = planned(data, slopes(2), "binomial", QUIET, where=where)
    trace = drive(plan.run(), whole(data))
    early = len(trace.steps) - 2
    assert [s.subset for s in trace.steps] == [RowSubset(2)] * early + [None] * 2
    assert sum(part.rho for step in trace.steps for part in step.parts) == plan.rho
    reference = drive(on_all_rows(plan).run(), whole(data)).result
    se = np.array(reference["standard_errors"])
    off = (np.array(trace.result["coefficients"]) - reference["coefficients"]) / se
    assert np.abs(off).max() < 0.01
    np.testing.assert_allclose(trace.result["standard_errors"], se, rtol=1e-3)
    if where is not None:
        used = (data["x0"] < 0.5).sum()
        assert trace.result["records_in_use"] == pytest.approx(used, abs=1)
