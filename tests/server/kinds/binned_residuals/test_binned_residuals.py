# SPDX-License-Identifier: Apache-2.0
"""Binned residuals against numpy on the same table, their coverage, and fits that are wrong where
they say.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.errors import InvalidFormula, InvalidPrivacy, InvalidQuery
from reticent_server.kinds import registry
from reticent_server.kinds.binned_residuals.kind import BinnedResiduals
from reticent_server.kinds.binned_residuals.links import MEANS, Spread
from support.fits.regressions import whole
from support.kinds.named_tests import offer
from support.kinds.recipes import facts_of, numeric, outcome
from support.seeds import seeded

COLUMNS = (
    numeric("y", -50.0, 50.0),
    numeric("x", -5.0, 5.0),
    Column("b", ColumnKind.BOOLEAN, 0, 1),
    Column("k", ColumnKind.INTEGER, 0, 200),
    numeric("e", 0.0, 1000.0),
    numeric("m", -5.0, 5.0, missing=("",)),
)
BETA = (0.5, 0.7)
QUESTIONS = {
    "identity": BinnedResiduals("y ~ x", BETA, scale=1.0),
    "logit": BinnedResiduals("b ~ x", BETA, "logit"),
    "log": BinnedResiduals("k ~ x", BETA, "log", 1.0, 1.0),
    "log, Gamma": BinnedResiduals("e ~ x", BETA, "log", 1.0, 2.0),
}


def table(n: Any, seed: Any = 0, curve: Any = 0.0) -> Any:
    """Whose fit by BETA is right but for `curve` times x² − 1 in the predictor."""
    rng = seeded(seed)
    x = np.clip(rng.normal(size=n), -5, 5)
    eta = 0.5 + 0.7 * x + curve * (x**2 - 1)
    return {
        "x": x,
        "y": np.clip(eta + rng.normal(size=n), -50, 50),
        "b": 1.0 * (rng.random(n) < expit(eta)),
        "k": np.clip(rng.poisson(np.exp(np.minimum(eta, 5))), 0, 200) * 1.0,
        "e": np.clip(np.exp(eta) * rng.exponential(size=n), 0, 1000),
        "m": x,
    }


def found_in(query: Any, own: Any, epsilon: Any, missing: Any = None) -> Any:
    n = len(own["x"])
    gone = np.zeros(n, bool) if missing is None else missing
    plan = registry.plan(facts_of(n, COLUMNS), query, offer(epsilon))
    return outcome(plan, whole(own, {"m": gone}))


def means_of(query: Any, own: Any, edges: Any) -> Any:
    """Numbers, mean residuals and standard deviations by bin, without noise."""
    eta = BETA[0] + BETA[1] * own["x"]
    mu = MEANS[query.link].mean(eta)
    r = own[query.formula.split()[0]] - mu
    bins = [(low <= mu) & (mu < high) for low, high in pairwise(edges)]
    return np.array([(b.sum(), r[b].mean(), r[b].std()) for b in bins]).T


@pytest.mark.parametrize("name", QUESTIONS)
def test_without_noise_to_speak_of_they_are_what_numpy_says(name: Any) -> None:
    own = table(20_000, curve=0.1)
    found = found_in(QUESTIONS[name], own, 10**5)
    numbers, residuals, spreads = means_of(QUESTIONS[name], own, found.edges)
    assert len(found.numbers) == 20
    assert found.numbers == pytest.approx(numbers, abs=2)
    assert found.residuals == pytest.approx(residuals, abs=0.03 * spreads.max())
    assert found.standard_deviations == pytest.approx(spreads, rel=0.1)
    plain = spreads / np.sqrt(numbers)
    assert found.standard_errors == pytest.approx(plain, rel=0.1)


@pytest.mark.slow
@pytest.mark.sample(8)
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_right_fit_has_residuals_of_zero_within_their_intervals(name: Any) -> None:
    """60 tables of 2,000 records at ε = 1; bins that say nothing are said to."""
    hits = []
    for seed in range(60):
        found = found_in(QUESTIONS[name], table(2000, seed), 1.0)
        hits += [low <= 0 <= high for low, high in found.confidence_intervals]
    assert len(hits) > 200
    assert 0.91 < np.mean(hits) <= 1


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_curve_that_the_fit_leaves_out_is_seen(name: Any) -> None:
    found = found_in(QUESTIONS[name], table(50_000, curve=0.3), 4.0)
    outside = [not low <= 0 <= high for low, high in found.confidence_intervals]
    assert sum(outside) >= 5


def test_given_bins_need_no_first_step_and_conditions_and_missing_cells_hold() -> None:
    own = table(20_000)
    gone = seeded(1).random(20_000) < 0.5
    query = BinnedResiduals("y ~ m", BETA, bins=(-1.0, 0.5, 2.0), where="b == 1")
    plan = registry.plan(facts_of(20_000, COLUMNS), query, offer(1))
    assert (plan.passes, plan.pilot) == (1, None)
    found = found_in(query, own, 10**5, gone)
    used = {k: v[~gone & (own["b"] == 1)] for k, v in own.items()}
    numbers, residuals, _ = means_of(query, used, found.edges)
    assert found.edges == [-1.0, 0.5, 2.0]
    assert found.numbers == pytest.approx(numbers, abs=2)
    assert found.residuals == pytest.approx(residuals, abs=0.05)


def test_an_empty_bin_has_the_interval_of_all_that_is_possible() -> None:
    query = BinnedResiduals("b ~ x", BETA, "logit", bins=(1e-9, 1e-8, 0.5, 0.9))
    found = found_in(query, table(2000), 1.0)
    assert found.confidence_intervals[0] == found.clipped[0]
    assert found.clipped[0] == pytest.approx((-1e-8, 1 - 1e-9))
    assert found.standard_errors[0] >= 0.49


def test_ranges_hold_what_they_say() -> None:
    """Of an exponential law .3 % is beyond; of counts less; nothing of shares."""
    rng = seeded(0)
    e = rng.exponential(size=10**5) * 3
    low, high = MEANS["log"].range(2.9, 3.1, Spread(1.0, 2.0, 0.0, 0.0))
    assert low == -3.1
    assert np.mean(e - 3 > high) == pytest.approx(0.003, abs=1e-3)
    k = rng.poisson(0.2, 10**5)
    low, high = MEANS["log"].range(0.1, 0.3, Spread(1.0, 1.0, 0.0, 1.0))
    assert np.mean((k - 0.2 > high) | (k - 0.2 < low)) < 1e-4
    assert MEANS["logit"].range(0.25, 0.5, Spread(None, 0, 0, 0)) == (-0.5, 0.75)
    assert MEANS["identity"].range(0.0, 1.0, Spread(2.0, 0, 0, 0)) == (-6.4, 6.4)
    wide = Spread(0.5, 1.0, 2.0, 0.0).at(3.0)
    assert wide == pytest.approx(np.sqrt(0.25 * 3 + 18))


def test_coefficients_that_meet_no_record_still_have_an_answer() -> None:
    """All fitted values the same, and fitted values that overflow."""
    for query in (
        BinnedResiduals("y ~ x", (1.0, 1e-9)),
        BinnedResiduals("k ~ x", (-5.0, 200.0), "log"),
    ):
        found = found_in(query, table(2000), 1.0)
        assert np.all(np.isfinite(found.residuals))
        assert np.all(np.diff(found.edges) > 0)


def test_bad_questions_are_refused() -> None:
    facts = facts_of(2000, COLUMNS)
    bad = {
        BinnedResiduals("y ~ x", (1.0,)): InvalidQuery,
        BinnedResiduals("y ~ x", (1.0, 2.0, 3.0)): InvalidQuery,
        BinnedResiduals("y ~ x", BETA, bins=(1.0, 1.0)): InvalidQuery,
        BinnedResiduals("y ~ x", BETA, "logit"): InvalidQuery,
        BinnedResiduals("y ~ x", BETA, "log"): InvalidQuery,
        BinnedResiduals("y ~ x", (1.0, 0.0)): InvalidQuery,
        BinnedResiduals("k ~ x", (900.0, 1.0), "log"): InvalidQuery,
        BinnedResiduals("y ~ z", BETA): InvalidFormula,
    }
    for query, error in bad.items():
        with pytest.raises(error):
            registry.plan(facts, query, offer(1))
    with pytest.raises(InvalidPrivacy):
        registry.plan(facts, QUESTIONS["identity"], offer(1e-7))
