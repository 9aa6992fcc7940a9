# SPDX-License-Identifier: Apache-2.0
"""ROC curves: SciPy's area and Wilson's intervals where there is hardly noise, the right coverage
where there is.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from reticent_server.domain.facts import ColumnProfile, Profile
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.errors import InvalidFormula, InvalidQuery
from reticent_server.kinds import registry
from reticent_server.kinds.roc.accuracy import (
    NoisyCount,
    NoisyShare,
    likelihood_ratio,
    share,
)
from reticent_server.kinds.roc.kind import KIND, Roc
from reticent_server.kinds.roc.plan import area_interval, cutoff, expected_numbers
from reticent_server.kinds.shared.group_bins import GroupBins
from reticent_server.kinds.shared.ranks import superiority
from support.kinds.named_tests import PEOPLE, facts, offer, people, people_facts
from support.kinds.recipes import block_of, outcome
from support.seeds import seeded

N = 3000
QUIET = offer(10**6, 100)
HELD = (0.9, 0.99)  # of 600 intervals of level .95: chances below 10⁻⁶ outside (binomial)


def table() -> dict[str, Any]:
    found = people(N)
    found["y"] = np.clip(found["y"] + found["b"], -10, 10)
    return found


def ask(query: Roc, privacy: Any = QUIET) -> Any:
    return outcome(KIND.plan(people_facts(N), query, privacy), block_of(**table()))


@pytest.mark.parametrize(("positive", "level"), [("high", None), ("low", "0"), ("low", None)])
def test_the_area_is_mann_and_whitneys(positive: Any, level: Any) -> None:
    rows = table()
    found = ask(Roc("y", "b", level=level, positive=positive))
    edges = [c.threshold for c in found.cutoffs]
    bins = np.searchsorted(edges, rows["y"], side="right")
    with_it = rows["b"] == (0 if level == "0" else 1)
    theirs = stats.mannwhitneyu(bins[with_it], bins[~with_it]).statistic
    area = theirs / with_it.sum() / (~with_it).sum()
    assert found.auc == pytest.approx(1 - area if positive == "low" else area, abs=0.002)
    assert found.auc_interval[0] < found.auc < found.auc_interval[1]
    assert found.privacy_standard_error < found.standard_error < 0.02
    assert found.prevalence == pytest.approx(with_it.mean(), abs=0.002)


@pytest.mark.parametrize("positive", ["high", "low"])
def test_a_threshold_s_measures_are_those_of_the_table(positive: Any) -> None:
    rows = table()
    found = ask(Roc("y", "b", (1.25,), positive=positive))
    (row,) = (c for c in found.cutoffs if c.threshold == 1.25)
    said = (rows["y"] >= 1.25) if positive == "high" else (rows["y"] < 1.25)
    ill = rows["b"] == 1
    sensitivity, specificity = said[ill].mean(), (~said)[~ill].mean()
    expected = {
        "sensitivity": sensitivity,
        "specificity": specificity,
        "positive_predictive_value": ill[said].mean(),
        "negative_predictive_value": (~ill)[~said].mean(),
        "positive_likelihood_ratio": sensitivity / (1 - specificity),
        "negative_likelihood_ratio": (1 - sensitivity) / specificity,
    }
    for name, value in expected.items():
        assert getattr(row, name) == pytest.approx(value, abs=0.01)
        low, high = getattr(row, f"{name}_interval")
        assert low < value < high
    wilson = proportion_confint(int(said[ill].sum()), int(ill.sum()), method="wilson")
    assert row.sensitivity_interval == pytest.approx(wilson, abs=0.003)


def test_a_share_s_interval_is_wilsons_without_noise_and_everything_where_all_is_noise() -> None:
    quiet = share(NoisyCount(30.0, 0.0), NoisyCount(70.0, 0.0), 0.95)
    assert quiet.interval == pytest.approx(proportion_confint(30, 100, method="wilson"), abs=1e-9)
    assert share(NoisyCount(3.0, 100.0), NoisyCount(7.0, 100.0), 0.95).interval == (0.0, 1.0)
    beyond = share(NoisyCount(105.0, 25.0), NoisyCount(-5.0, 25.0), 0.95)
    assert beyond.value == beyond.interval[1] == 1.0
    assert beyond.interval[0] > 0.8


def test_a_likelihood_ratio_has_an_open_end_where_its_denominator_may_be_0() -> None:
    s = NoisyShare(0.8, (0.7, 0.9))
    nothing = likelihood_ratio(s, NoisyShare(0.0, (0.0, 0.1)))
    assert nothing.value is None
    assert nothing.interval[0] == pytest.approx(7.0)
    assert nothing.interval[1] is None
    low, high = likelihood_ratio(s, NoisyShare(0.05, (0.0, 0.1))).interval
    assert high is None
    assert low is not None
    assert 7.0 < low < 16.0
    none = likelihood_ratio(NoisyShare(0.0, (0.0, 0.1)), NoisyShare(0.5, (0.4, 0.6)))
    assert none.value == 0.0
    assert none.interval[0] == 0.0
    assert none.interval[1] == pytest.approx(0.25)


@pytest.mark.parametrize("area", [0.5, 0.8, 0.95])
def test_intervals_hold_what_they_are_of(area: float) -> None:
    """At n = 2,000, a fifth of them ill, with the noise of ε = 1 and three times as large."""
    rng, d, B = seeded(3), float(stats.norm.ppf(area)) * 2**0.5, 12
    edges = np.linspace(-1.5, 1.5 + d, B - 1)
    ill, well = (np.diff([0, *stats.norm.cdf(edges - shift), 1]) for shift in (d, 0.0))
    truth = float(ill @ (np.append(0, np.cumsum(well)[:-1]) + well / 2))
    k = 6
    held: list[list[bool]] = []
    for _ in range(600):
        sigma = (8.0, 24.0)[len(held) % 2]
        T: Any = np.stack([rng.multinomial(400, ill), rng.multinomial(1600, well)])
        bins = GroupBins(T + np.rint(rng.normal(0, sigma, T.shape)), sigma)
        row = cutoff(bins, k, 0.0, low=False, level=0.95)
        sensitivity, specificity = ill[k:].sum(), well[:k].sum()
        upper = row.positive_likelihood_ratio_interval[1]
        held.append([
            _in(area_interval(superiority(bins), bins, 0.95), truth),
            _in(row.sensitivity_interval, sensitivity),
            _in(row.specificity_interval, specificity),
            _in((row.positive_likelihood_ratio_interval[0], np.inf if upper is None else upper),
                sensitivity / (1 - specificity)),
        ])  # fmt: skip
    shares = np.mean(held, axis=0)
    assert np.all((shares > HELD[0]) & (shares <= 1.0)), shares
    assert np.all(shares[1:3] < HELD[1]), shares


def _in(interval: Any, value: float) -> bool:
    return bool(interval[0] <= value <= interval[1])


@pytest.mark.parametrize(
    "query",
    [
        Roc("g", "b"),
        Roc("y", "g"),
        Roc("b", "b"),
        Roc("y", "b", level="2"),
        Roc("y", "b", (-10.0,)),
        Roc("y", "b", (10.5,)),
        Roc("x + C(g)", "b", coefficients=(1.0, 2.0)),
        Roc("x + b", "b", coefficients=(1.0, 2.0, 3.0)),
        Roc("x", "b", (11.5,), coefficients=(1.0, 2.0)),
        Roc("x", "b", coefficients=(1.0, 0.0)),
        Roc("x", "b", coefficients=(1.0, 1e308)),
        Roc("x + C(g)", "b"),
    ],
)
def test_what_cannot_be_asked_is_refused(query: Roc) -> None:
    with pytest.raises((InvalidQuery, InvalidFormula)):
        KIND.plan(people_facts(N), query, QUIET)


def test_records_of_a_person_are_not_taken_as_independent() -> None:
    with pytest.raises(InvalidQuery, match="independent"):
        registry.plan(people_facts(N, 3), KIND.examples[0], QUIET)


def test_the_forecast_is_the_noise_of_the_area() -> None:
    """With the outcome's numbers from the profile: the rarer one decides."""
    query, public = Roc("y", "b"), people_facts(N)
    plan: Any = KIND.plan(public, query, offer(1))
    found = ask(query, offer(1))
    assert found.privacy_standard_error == pytest.approx(
        plan.forecast["privacy_standard_error"], rel=0.35
    )
    assert plan.precision.sampling[0] == pytest.approx(0.0095, rel=0.1)
    assert public.profile is not None
    columns = {**public.profile.columns, "b": ColumnProfile(counts=(2900.0, 100.0))}
    rare = replace(public, profile=Profile(columns))
    assert expected_numbers(rare, plan.groups) == (100.0, 2900.0)
    worse: Any = KIND.plan(rare, query, offer(1)).precision
    assert worse.privacy[0] > 10 * plan.precision.privacy[0]
    assert worse.sampling[0] > 2 * plan.precision.sampling[0]


def test_a_test_with_two_outcomes_is_a_score_with_one_edge() -> None:
    """The diagnostic table of two columns."""
    rows: dict[str, Any] = {**people(N)}
    rows["b"] = (rows["x"] > 0) * 1.0
    columns = (*PEOPLE, Column("said", ColumnKind.BOOLEAN, 0, 1))
    rows["said"] = (rows["y"] > 1) * 1.0
    plan = KIND.plan(facts(N, columns), Roc("said", "b"), QUIET)
    found = outcome(plan, block_of(**rows))
    (row,) = found.cutoffs
    assert row.threshold == 1.0
    assert row.sensitivity == pytest.approx(rows["said"][rows["b"] == 1].mean(), abs=0.005)
    assert row.positive_predictive_value == pytest.approx(
        rows["b"][rows["said"] == 1].mean(), abs=0.005
    )
    assert found.auc == pytest.approx((row.sensitivity + row.specificity) / 2, abs=1e-9)


def predicted(outcome: str = "b") -> tuple[Any, Any]:
    """A model's predictor as the score, and what it is of each record."""
    query = Roc("x + I(y**2)", outcome, (1.5,), where="k > 1", coefficients=(0.5, 1.0, 0.2))
    rows = table()
    return query, 0.5 + rows["x"] + 0.2 * rows["y"] ** 2


def test_a_model_s_predictor_is_a_score_as_a_column_would_be() -> None:
    query, eta = predicted()
    found, rows = ask(query), table()
    used = rows["k"] > 1
    edges = [c.threshold for c in found.cutoffs]
    assert 10 <= len(edges) <= 24
    bins = np.searchsorted(edges, eta, side="right")
    with_it = rows["b"] == 1
    theirs = stats.mannwhitneyu(bins[with_it & used], bins[~with_it & used]).statistic
    area = theirs / (with_it & used).sum() / (~with_it & used).sum()
    assert found.auc == pytest.approx(area, abs=0.003)
    (row,) = (c for c in found.cutoffs if c.threshold == 1.5)
    assert row.sensitivity == pytest.approx((eta >= 1.5)[with_it & used].mean(), abs=0.01)


def test_edges_of_a_predictor_are_its_quantiles_over_public_rows() -> None:
    """So that each bin has about as many records; without a profile they divide the bounds."""
    query, eta = predicted()
    known = people_facts(N)
    plan: Any = KIND.plan(known, query, QUIET)
    column: Any = KIND.plan(known, Roc("x", "b"), QUIET)
    shares = np.histogram(eta, [-np.inf, *plan.cells.edges, np.inf])[0] / N
    assert shares.max() < 0.15
    blind: Any = KIND.plan(facts(N), query, QUIET)
    gaps = np.diff([e for e in blind.cells.edges if e != 1.5])
    assert gaps.max() < 2 * np.median(gaps)
    assert plan.counting_ms >= column.counting_ms


def test_an_outcome_of_two_levels_has_a_model_too() -> None:
    columns = (*PEOPLE, Column("sex", ColumnKind.CATEGORICAL, 0, 1, ("f", "m")))
    query, _ = predicted("sex")
    rows = {**table(), "sex": table()["b"]}
    plan = KIND.plan(facts(N, columns), query, QUIET)
    found = outcome(plan, block_of(**rows))
    assert found.levels == ("m", "f")
    same = outcome(KIND.plan(facts(N), predicted()[0], QUIET), block_of(**table()))
    assert found.auc == pytest.approx(same.auc, abs=0.005)
