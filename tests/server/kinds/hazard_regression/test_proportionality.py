# SPDX-License-Identifier: Apache-2.0
"""The test of proportional hazards beside Cox's regressions of each bin of time."""

from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.steps import multiplied
from reticent_server.kinds.hazard_regression.partial_score import PartialScoreMap
from reticent_server.kinds.hazard_regression.proportionality import (
    BinnedScoresMap,
    BinnedSlopes,
    bin_events,
    time_bins,
)
from reticent_server.kinds.hazard_regression.public_persons import RiskTable
from support.fits.hazards import (
    COLUMNS,
    FORMULA,
    GROUP,
    changing,
    persons,
    planned_partial,
    stratified_cox,
)
from support.fits.regressions import drive, whole
from support.seeds import seeded
from support.tables.follow_up import offer

LATE = FORMULA.replace("Surv(t, e)", "Surv(s, t, e)")
QUIET = 10**8 * RHO_UNITS // 10**4
STRATA = [*COLUMNS, GROUP]


def answered(data: Any, rho: int, formula: str = FORMULA, **more: Any) -> Any:
    return drive(planned_partial(data, rho, formula, **more).run(), whole(data))


def within(data: Any, begin: float, end: float) -> tuple[Any, Any]:
    """Cox's regression of follow-up between two times, by strata, and its standard errors."""
    kept = (data["t"] > begin) & (data["s"] < end)
    X = np.column_stack([data[name][kept] for name in ("age", "arm", "dose")])
    start, time = np.maximum(data["s"][kept], begin), np.minimum(data["t"][kept], end)
    event = data["e"][kept] * (data["t"][kept] <= end)
    beta, V = stratified_cox(X, start, time, event, data["g"][kept])
    return beta, np.sqrt(np.diag(V))


@pytest.mark.slow
@pytest.mark.parametrize(("late", "strata"), [(0.0, None), (0.4, None), (0.4, "g")])
def test_without_noise_coefficients_are_those_of_the_bins(late: float, strata: str | None) -> None:
    """To a quarter of Cox's standard errors in the bin, which is a step of Newton's away; a
    stratum's means at risk are those that the public persons have.
    """
    rng = seeded(3)
    data = persons(rng, 6000, late=late, strata=3 if strata else 1)
    formula = LATE if late else FORMULA
    found = answered(data, QUIET, formula, strata=strata, columns=STRATA, bins=3).result
    test = found["proportionality"]
    begin = 0.0
    for each in test["bins"]:
        beta, error = within(data, begin, each["end"])
        assert np.abs((each["coefficients"] - beta) / error).max() < 0.4
        assert each["standard_errors"] == pytest.approx(error, rel=0.2)
        begin = each["end"]
    assert len(test["bins"]) == 3
    assert sum(each["events"] for each in test["bins"]) == pytest.approx(data["e"].sum(), rel=0.02)


@pytest.mark.slow
def test_it_finds_what_changes_and_not_what_does_not() -> None:
    """Age's coefficient falls by .5 at a time; the others stay. Of 3 seeded tables each."""
    rng = seeded(6)
    for gap in (0.25, 0.0):
        seen = []
        for _ in range(3):
            data = changing(rng, 6000, gap)
            test = answered(data, offer(4.0).rho, bins=2).result["proportionality"]
            seen.append(np.array(test["trends"]) / np.array(test["standard_errors"]))
            assert test["p_values"][2] is None  # a term with a long tail
            assert test["df"] == 2
            assert (test["p_value"] < 0.05) == (gap > 0)
        z = np.array(seen)
        assert (z[:, 0] < -2.5).all() == (gap > 0)
        assert np.abs(z[:, 1:]).max() < 3.5


@pytest.mark.slow
def test_the_pieces_are_the_score() -> None:
    data = persons(seeded(7), 300, late=0.4, strata=3)
    steps = answered(data, QUIET, LATE, strata="g", columns=STRATA, bins=4).steps
    (binned,) = [s.map_fn for s in steps if isinstance(s.map_fn, BinnedScoresMap)]
    assert len(binned.ends) == 4
    rest = (binned.coding, binned.columns, binned.point, binned.known, binned.far)
    (whole_score,) = PartialScoreMap(*rest)(whole(data))
    (pieces,) = binned(whole(data))
    summed = multiplied(pieces).reshape(4, 3, 300).sum(axis=0)
    assert summed == pytest.approx(multiplied(whole_score), abs=1e-9)


def test_bins_have_about_as_many_events_each() -> None:
    ends = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    events = np.array([10.0, 30.0, 20.0, 0.0])
    table = RiskTable(ends, np.tile(events, 2), np.full(8, 99.0), np.ones(8), 2)
    assert time_bins(table, 2).tolist() == [2.0, 4.0]
    assert bin_events(table, np.array([2.0, 4.0])).tolist() == [80.0, 40.0]
    assert time_bins(table, 8).tolist() == [1.0, 2.0, 3.0, 4.0]
    lone = RiskTable(ends, np.append(np.zeros(7), 5.0), np.full(8, 99.0), np.ones(8))
    assert time_bins(lone, 3).tolist() == [8.0]


def test_what_is_added_to_every_bin_is_no_trend() -> None:
    rng = seeded(8)
    root = rng.normal(size=(4, 3, 3))
    V = root @ root.transpose(0, 2, 1) + np.eye(3)
    moved, added = rng.normal(size=(4, 3)), rng.normal(size=3)
    found = [
        BinnedSlopes(np.arange(4.0), np.array([3.0, 1.0, 2.0, 4.0]), m, V, V).trend
        for m in (moved, moved + 10 * added, 0 * moved + added)
    ]
    assert found[0][0] == pytest.approx(found[1][0])
    assert found[2][0] == pytest.approx(np.zeros(3), abs=1e-12)
    g = BinnedSlopes(np.arange(4.0), np.array([3.0, 1.0, 2.0, 4.0]), moved, V, V).middles
    line = BinnedSlopes(np.arange(4.0), np.array([3.0, 1.0, 2.0, 4.0]), np.outer(g, added), V, V)
    assert line.trend[0] == pytest.approx(added)


@pytest.mark.slow
def test_a_reply_says_the_test_where_it_is_asked() -> None:
    data = persons(seeded(9), 2000)
    found = answered(data, offer(2.0).rho, bins=3)
    assert sum(found.result["shares"].values()) == pytest.approx(1.0)
    assert found.result["shares"]["proportionality"] == pytest.approx(0.25, abs=0.01)
    assert "proportionality" not in answered(data, offer(2.0).rho).result
    names = [s.label for s in found.steps]
    assert names[-1] == "proportional hazards"
