# SPDX-License-Identifier: Apache-2.0
"""Adjusted effects: without noise the textbook's, and with it intervals that hold."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm

from reticent_server.domain.cost import RHO_UNITS, PrivacyCost
from reticent_server.domain.facts import ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.row_tail import RowCut
from reticent_server.kinds.treatment_effect.estimate import FEW, HEAVY, POOR, steep
from reticent_server.kinds.treatment_effect.kind import KIND, TreatmentEffect
from reticent_server.kinds.treatment_effect.nuisance import Nuisance, root
from reticent_server.kinds.treatment_effect.records import AdjustedRecords, Centres, Influence
from reticent_server.kinds.treatment_effect.targets import TARGETS
from support.fits.regressions import HUGE_RHO, whole
from support.kinds.named_tests import facts, offer
from support.kinds.recipes import numeric, outcome
from support.seeds import seeded

EFFECT = 1.0
COLUMNS = (
    numeric("y", -10.0, 10.0),
    numeric("x", -5.0, 5.0),
    numeric("z", -5.0, 5.0),
    Column("a", ColumnKind.BOOLEAN, 0, 1),
    Column("c", ColumnKind.CATEGORICAL, 0, 2, ("u", "v", "w")),
    Column("arm", ColumnKind.CATEGORICAL, 0, 1, ("old", "new")),
)
EXACT = PrivacyCost(1, 1, HUGE_RHO)


def table(n: int, seed: int = 0, *, reach: float = 1.0) -> dict[str, Any]:
    """y rises by EFFECT and with x, which also leads to treatment. reach: how far."""
    rng = seeded(seed)
    x, z = rng.normal(size=(2, n))
    a = (rng.random(n) < 1 / (1 + np.exp(0.3 - reach * (0.8 * x - 0.5 * z)))).astype(float)
    y = 1 + EFFECT * a + x + 0.5 * z + rng.normal(size=n)
    return {
        "y": np.clip(y, -10, 10), "x": np.clip(x, -5, 5), "z": np.clip(z, -5, 5), "a": a,
        "c": rng.integers(3, size=n).astype(float), "arm": a,
    }  # fmt: skip


def known(n: int) -> DatasetFacts:
    """With a profile of another table of the same law."""
    other = table(20_000, 99)
    found = facts(n, COLUMNS, 1, **{name: other[name] for name in ("y", "x", "z")})
    assert found.profile is not None
    half = ColumnProfile(counts=(n / 2, n / 2))
    columns = dict(found.profile.columns) | {"a": half, "arm": half}
    return replace(found, profile=Profile(columns | {"c": ColumnProfile(counts=(n / 3,) * 3)}))


def textbook(t: dict[str, Any], estimand: str, estimator: str) -> tuple[float, float]:
    """Estimate, and standard error by influences at the fitted models."""
    A, y, X = t["a"], t["y"], sm.add_constant(np.column_stack([t["x"], t["z"]]))
    e = np.clip(sm.Logit(A, X).fit(disp=0).predict(), 0.05, 0.95)
    b = sm.OLS(y, np.column_stack([X[:, 0], A, X[:, 1:]])).fit().params
    m0 = X @ np.r_[b[0], b[2:]] * (estimator != "ipw")
    m1 = m0 + b[1] * (estimator != "ipw")
    w = TARGETS[estimand].weights(e, A)
    on = float(estimator != "gcomp")
    r = np.average(m1 - m0, weights=w.target)
    r1 = on * np.average(y - m1, weights=A * w.treated)
    r0 = on * np.average(y - m0, weights=(1 - A) * w.control)
    psi = w.target * (m1 - m0 - r) / w.target.mean()
    psi = psi + on * A * w.treated * (y - m1 - r1) / np.mean(A * w.treated)
    psi = psi - on * (1 - A) * w.control * (y - m0 - r0) / np.mean((1 - A) * w.control)
    return float(r + r1 - r0), float(psi.std() / np.sqrt(len(y)))


def models(t: dict[str, Any]) -> dict[str, Any]:
    """The textbook's models, as released ones."""
    A, X = t["a"], sm.add_constant(np.column_stack([t["x"], t["z"]]))
    logit = sm.Logit(A, X).fit(disp=0)
    line = sm.OLS(t["y"], np.column_stack([X[:, 0], A, X[:, 1:]])).fit()
    return {"propensity": tuple(logit.params), "outcome": tuple(line.params)}


@pytest.mark.parametrize("estimand", TARGETS)
@pytest.mark.parametrize("estimator", ["aipw", "ipw"])
def test_without_noise_it_is_the_textbooks(estimand: Any, estimator: Any) -> None:
    t = table(4000, reach=0.6)
    given = models(t)
    if estimator == "ipw":
        del given["outcome"]
    query = TreatmentEffect("y", "a", "x + z", estimand, estimator, **given)
    found = outcome(KIND.plan(known(4000), query, EXACT), whole(t))
    effect, error = textbook(t, estimand, estimator)
    assert found.effect == pytest.approx(effect, abs=1e-3)
    assert found.standard_error == pytest.approx(error, rel=0.01)
    assert found.privacy_standard_error < 1e-6
    half = 1.96 * error
    assert found.confidence_interval == pytest.approx((effect - half, effect + half), abs=5e-3)


def test_models_are_fitted_where_none_are_given() -> None:
    t = table(4000)
    query = TreatmentEffect("y", "a", "x + z")
    found = outcome(KIND.plan(known(4000), query, EXACT), whole(t))
    assert found.effect == pytest.approx(textbook(t, "ate", "aipw")[0], abs=5e-3)


def test_g_computation_is_the_models_effect_with_the_models_error() -> None:
    t = table(4000)
    given, V = models(t), np.diag([0.01, 0.04, 0.01, 0.01])
    query = TreatmentEffect(
        "y", "a", "x + z", "ate", "gcomp", outcome=given["outcome"],
        outcome_covariance=tuple(map(tuple, V.tolist())),
    )  # fmt: skip
    found = outcome(KIND.plan(known(4000), query, EXACT), whole(t))
    assert found.effect == pytest.approx(given["outcome"][1], abs=1e-4)
    assert found.models_standard_error == pytest.approx(0.2, rel=0.01)
    assert found.standard_error == pytest.approx(0.2, rel=0.05)
    assert found.overlap is None
    assert found.balance is None


def test_a_logit_outcome_is_averaged_over_the_records() -> None:
    t = table(4000)
    t["b"] = (t["y"] > 1).astype(float)
    columns = (*COLUMNS, Column("b", ColumnKind.BOOLEAN, 0, 1))
    X = sm.add_constant(np.column_stack([t["a"], t["x"], t["z"]]))
    fit = sm.Logit(t["b"], X).fit(disp=0)
    V = tuple(map(tuple, fit.cov_params().tolist()))
    query = TreatmentEffect(
        "b", "a", "x + z", "ate", "gcomp", outcome=tuple(fit.params), outcome_covariance=V,
        outcome_link="logit",
    )  # fmt: skip
    known_facts = known(4000)
    known_facts = replace(known_facts, schema=replace(known_facts.schema, columns=columns))
    found = outcome(KIND.plan(known_facts, query, EXACT), whole(t))
    margin = fit.get_margeff(dummy=True).summary_frame().iloc[0]
    assert found.effect == pytest.approx(margin.iloc[0], abs=2e-4)
    assert found.models_standard_error == pytest.approx(margin.iloc[1], rel=0.02)


@pytest.mark.slow
def test_errors_of_released_weights_count_to_first_order() -> None:
    """The standard deviation of the estimate over noisy coefficients is what is said of them."""
    t = table(4000)
    given, V = models(t), np.diag([0.03, 0.02, 0.02]) ** 2
    noise = tuple(map(tuple, V.tolist()))
    rng, found = seeded(0), []
    for _ in range(60):
        moved = np.array(given["propensity"]) + rng.multivariate_normal(np.zeros(3), V)
        query = TreatmentEffect(
            "y", "a", "x + z", "ate", "ipw", propensity=tuple(moved), propensity_noise=noise
        )
        found.append(outcome(KIND.plan(known(4000), query, EXACT), whole(t)))
    spread = np.std([each.effect for each in found])
    assert np.mean([each.models_standard_error for each in found]) == pytest.approx(
        spread, rel=0.25
    )


@pytest.mark.parametrize("estimand", TARGETS)
def test_slopes_are_those_of_the_weights(estimand: str) -> None:
    eta, h = np.linspace(-2, 2, 9), 1e-6
    a = np.ones(9)

    def at(moved: Any) -> Any:
        return TARGETS[estimand].weights(1 / (1 + np.exp(-moved)), a)

    found, above, below = at(eta), at(eta + h), at(eta - h)
    for name in ("target", "treated", "control"):
        slope = (getattr(above, name) - getattr(below, name)) / (2 * h)
        np.testing.assert_allclose(getattr(found, f"{name}_slope"), slope, atol=1e-6)


@pytest.mark.parametrize("estimand", TARGETS)
def test_derivatives_are_those_of_the_influences(estimand: str) -> None:
    """By each coefficient of both models, of a logit outcome within its bounds."""
    t, h = table(200), 1e-5
    t["y"] = np.clip(t["y"] / 20 + 0.5, 0, 1)
    plan: Any = KIND.plan(known(200), TreatmentEffect("y", "a", "x + z", estimand), offer(1))  # type: ignore[arg-type]
    gamma, beta = np.array([0.1, 2.5, -1.3]), np.array([0.2, 0.4, 0.3, -0.1])

    def influences(g: Any, b: Any) -> Any:
        nuisances = [replace_nuisance(each) for each in (g, b)]
        records: AdjustedRecords = replace(
            plan.records, propensity=nuisances[0], outcome=nuisances[1], link="logit"
        )
        return Influence(records, Centres(0.9, 1.1, 0.8, 0.1, 0.05, -0.05)).of(whole(t))

    _, derivatives = influences(gamma, beta)
    for place in range(7):
        step = np.zeros(7)
        step[place] = h
        up, down = (influences(gamma + s * step[:3], beta + s * step[3:])[0] for s in (1, -1))
        np.testing.assert_allclose(derivatives[place], (up - down) / (2 * h), atol=1e-5)


def replace_nuisance(coefficients: Any) -> Any:
    return Nuisance(coefficients, np.eye(len(coefficients)))


def test_balance_and_overlap_are_those_of_the_table() -> None:
    t = table(4000)
    query = TreatmentEffect("y", "a", "x + z", **models(t))
    plan: Any = KIND.plan(known(4000), query, EXACT)
    found = outcome(plan, whole(t))
    (centre, scale), A, x = plan.locations[0], t["a"] == 1, t["x"]
    assert found.balance.before[0] == pytest.approx((x[A].mean() - x[~A].mean()) / scale, abs=0.01)
    assert abs(centre) < 0.1
    # fitted weights leave .012 between groups of 2,000 (over tables); five of it
    assert max(map(abs, found.balance.after)) < 0.06
    assert found.numbers == pytest.approx([np.sum(~A), np.sum(A)], abs=0.5)
    assert sum(found.overlap.treated) == pytest.approx(np.sum(A), abs=0.5)
    assert found.effective_numbers[1] < np.sum(A)


def test_poor_overlap_has_no_interval_and_says_what_to_ask() -> None:
    t = table(4000, reach=4.0)
    query = TreatmentEffect("y", "a", "x + z", **models(t))
    found = outcome(KIND.plan(known(4000), query, offer(4)), whole(t))
    assert found.confidence_interval == (None, None)
    assert found.p_value is None
    assert any(each.startswith(POOR.split("{", maxsplit=1)[0]) for each in found.warnings)
    overlap = replace(query, estimand="overlap")
    assert outcome(KIND.plan(known(4000), overlap, offer(4)), whole(t)).p_value is not None


@pytest.mark.slow
def test_too_few_treated_and_heavy_influences_have_none_either() -> None:
    t = table(2000)
    rare = t | {"a": np.where(np.arange(2000) < 20, 1.0, 0.0)}
    query = TreatmentEffect("y", "a", "x + z", propensity=(-4.0, 0.0, 0.0), trim=0.01,
                            estimator="ipw", estimand="att")  # fmt: skip
    assert FEW in outcome(KIND.plan(known(2000), query, offer(1)), whole(rare)).warnings
    rng = seeded(0)
    wild = table(20_000)
    wild["y"] = np.clip(wild["y"] + rng.standard_t(1, 20_000), -1e5, 1e5)
    found = known(20_000)
    wide = (numeric("y", -1e5, 1e5), *COLUMNS[1:])
    found = replace(found, schema=replace(found.schema, columns=wide))
    assert (
        HEAVY
        in outcome(
            KIND.plan(found, TreatmentEffect("y", "a", "x + z"), offer(4)), whole(wild)
        ).warnings
    )


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (TreatmentEffect("y", "x", "z"), "boolean"),
        (TreatmentEffect("y", "a", "a + x"), "other columns"),
        (TreatmentEffect("a", "a", "x"), "other columns"),
        (TreatmentEffect("y", "a", "0 + x"), "intercept"),
        (TreatmentEffect("y", "a", "x", propensity=(1.0, 2.0, 3.0)), "has 3 coefficients"),
        (TreatmentEffect("y", "a", "x", outcome=(1.0, 2.0)), "needs 3"),
        (TreatmentEffect("y", "a", "x", "overlap", "gcomp"), "no weights"),
        (TreatmentEffect("y", "a", "x", estimator="ipw", outcome=(1.0, 2.0, 3.0)), "no model"),
        (TreatmentEffect("y", "a", "x", propensity_noise=((1.0,),)), "give both"),
        (TreatmentEffect("y", "a", "x", propensity=(1.0, 2.0), propensity_noise=((1.0,),)),
            "symmetric"),
        (TreatmentEffect("y", "a", "x", outcome=(1.0, 2.0, 3.0), outcome_link="logit"), "logit"),
    ],
)  # fmt: skip
def test_questions_that_make_no_sense_are_declined_in_words(
    query: TreatmentEffect, said: str
) -> None:
    with pytest.raises(InvalidQuery, match=said):
        KIND.plan(known(2000), query, offer(1))


def test_two_levels_are_a_treatment_and_conditions_leave_records_out() -> None:
    t = table(4000)
    query = TreatmentEffect("y", "arm", "x + z", where="z > 0", **models(t))
    found = outcome(KIND.plan(known(4000), query, EXACT), whole(t))
    kept = {name: values[t["z"] > 0] for name, values in t.items()}
    assert found.numbers == pytest.approx([np.sum(kept["a"] == 0), np.sum(kept["a"])], abs=0.5)
    # the textbook's estimate of these records, at the models of all
    query = replace(query, where=None)
    alone = outcome(KIND.plan(known(len(kept["a"])), query, EXACT), whole(kept))
    assert found.effect == pytest.approx(alone.effect, abs=2e-3)
    assert found.standard_error == pytest.approx(alone.standard_error, rel=0.02)


def test_tails_of_influences_and_of_residuals_both_decline() -> None:
    cut = RowCut(length=1.0, beyond=10.0, alpha=3.0, excess=1.0, bulk=2.0)
    assert steep(cut, skewed=True)
    assert not steep(replace(cut, bulk=1.3), skewed=False)
    assert not steep(replace(cut, alpha=1.8), skewed=False)


def test_where_noise_hides_residuals_those_of_skewed_responses_must_fall_twice_as_fast() -> None:
    cut = RowCut(length=1.0, beyond=10.0, alpha=4.0, excess=1.0)
    assert steep(cut, skewed=True)
    assert not steep(replace(cut, alpha=3.9), skewed=True)
    assert steep(replace(cut, alpha=2.0), skewed=False)
    assert not steep(replace(cut, alpha=1.9), skewed=False)


def test_the_noise_of_the_effects_own_sum_is_in_its_error() -> None:
    t = table(40_000)
    plan: Any = KIND.plan(known(40_000), TreatmentEffect("y", "a", "x + z", **models(t)), offer(1))
    found = outcome(plan, whole(t))
    assert found.privacy_standard_error > 0.5 * plan.precision.privacy[0]
    assert found.standard_error > found.privacy_standard_error


def test_a_root_of_a_covariance_is_one() -> None:
    V = np.array([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_allclose(root(V).T @ root(V), V)
    assert np.isfinite(root(np.zeros((2, 2)))).all()


@pytest.mark.slow
def test_noisy_intervals_hold_the_truth_and_are_forecast() -> None:
    held, errors = [], []
    plan = KIND.plan(known(8000), TreatmentEffect("y", "a", "x + z"), offer(2))
    for seed in range(20):
        found = outcome(plan, whole(table(8000, seed)))
        low, high = found.confidence_interval
        held.append(low is not None and low <= EFFECT <= high)
        errors.append(found.privacy_standard_error)
    assert sum(held) >= 17
    assert plan.precision is not None
    assert 0.4 < plan.precision.privacy[0] / np.median(errors) < 2.5
    assert plan.rho / RHO_UNITS == pytest.approx(offer(2).rho / RHO_UNITS, rel=0.01)
