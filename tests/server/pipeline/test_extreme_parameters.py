# SPDX-License-Identifier: Apache-2.0
"""Parameters that an analyst or a curator may choose, as far out as they go, for every kind.

Each is refused in words, or gives a plan whose parts cost what is charged, and that replies to any
table.
"""

import json
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from reticent_server.domain.cost import RHO_UNITS, PrivacyCost
from reticent_server.domain.facts import DatasetFacts, Policy
from reticent_server.domain.plan import Plan
from reticent_server.domain.private import Private
from reticent_server.domain.query import Privacy
from reticent_server.domain.reservation import Reservation
from reticent_server.domain.schema import LEAST_WIDTH, MAX_NUMBER, Column, ColumnKind, Schema, Unit
from reticent_server.domain.steps import QuantileTree, RunningCounts, Step, SumStep
from reticent_server.engine import local
from reticent_server.engine.local import LocalEngine
from reticent_server.errors import InvalidRequest
from reticent_server.kinds.profile.kind import ProfileQuery
from reticent_server.mechanisms import noisy_sum, quantile_tree, running_counts
from reticent_server.mechanisms._sampler import DiscreteGaussian
from reticent_server.pipeline import planning
from reticent_server.pipeline.forecasts import forecast_json
from reticent_server.vault.places import ABSENT_MASK
from reticent_server.web.bodies import RequestBody
from support.seeds import seeded

EPSILONS = (1e-9, 1e-6, 1e-4, 1e-2, 1.0, 50.0, 100.0)
DELTAS = (None, 1e-18, 1e-12, 1e-6, 0.01)
BOUNDS = {
    "usual": (-50.0, 50.0),
    "huge": (-1e15, 1e15),
    "as large as can be": (-MAX_NUMBER, MAX_NUMBER),
    "far and narrow": (1e15, 1e15 + 2),
    "as narrow as can be": (0.0, LEAST_WIDTH),
    "a unit": (0.0, 1.0),
}
FAR = 1e300
LINEAR = {"kind": "linear_regression", "formula": "y ~ x"}
LOGISTIC = {"kind": "glm", "formula": "b ~ x", "family": "binomial"}
INFLUENCE = {"mechanism": "influence"}
ASYMPTOTIC = INFLUENCE | {"calibration": "asymptotic"}


def each(first: Any, **choices: Any) -> Iterator[Any]:
    """The first with every combination of the choices; None leaves a field out."""
    for values in product(*choices.values()):
        yield first | {k: v for k, v in zip(choices, values, strict=True) if v is not None}


Y = {"column": "y"}
MANY = [k / 100 for k in range(1, 100)]
QUERIES: dict[str, list[dict]] = {
    "count": [{"kind": "count"}, {"kind": "count", "where": "x > 0"}],
    "mean": list(each({"kind": "mean"} | Y, where=[None, "x > 0"])),
    "sum": list(each({"kind": "sum"} | Y, where=[None, "x > 0"])),
    "histogram": [
        *each({"kind": "histogram"} | Y,
            bins=[[-10, 0, 10], [-FAR, FAR], [0, 5e-324], [k / 50 for k in range(4000)]]),
        {"kind": "histogram", "column": "k"},
    ],
    "crosstab": list(each({"kind": "crosstab"}, columns=[["k", "b"], ["b", "g"]])),
    "synthetic": [
        *each(
            {"kind": "synthetic", "columns": ["y", "k", "b", "g"]}, bins=[2, 64],
            cliques=[
                None, [["y", "k", "b", "g"]], [["b"], ["b", "g"]], [["b", "b"]], [["nobody"]],
            ],
        ),
        {"kind": "synthetic", "columns": ["b", "b"]},
    ],
    "quantiles": list(each(
        {"kind": "quantiles"}, column=["y", "k"],
        probabilities=[None, [0.5], [1e-4, 1 - 1e-4], [1e-9], [1 - 1e-16], [0.5, 0.5001], MANY],
    )),
    "iqr": list(each({"kind": "iqr"}, column=["y", "k"], mechanism=[None, "ptr"])),
    "median": list(each({"kind": "median"} | Y,
            mechanism=["exponential", "smooth_sensitivity", "ptr"])),
    "m_estimate": list(each(
        {"kind": "m_estimate"} | Y, tuning=[None, 1e-300, 1e-12, 0.01, 1.0, 1e9, FAR],
        base=["uniform", "cauchy"],
        lower=[None, -FAR, -1.0], upper=[None, 5e-324, 1.0, FAR],
    )),
    "depth_median": list(each(
        {"kind": "depth_median"}, columns=[["y"], ["y", "x"], ["y", "x", "k"]],
        directions=[None, 10],
        scale=["iqr", "mad", "trimmed"], eta=[None, "private", 1e-300, 2.0**-33, 1e-6, 1e9, FAR],
    )),
    "location_scale": list(each({"kind": "location_scale"} | Y,
            tuning=[None, 1e-9, 0.1, 100.0, 1e9])),
    "linear_regression": [
        *each(LINEAR, tuning=[None, 1e-300, 0.1, 100.0, FAR]),
        *each(LINEAR, ridge=[5e-324, 1.0, 1e6, FAR]),
        *each(LINEAR, loss=["tukey"], tuning=[None, 0.1]),
        LINEAR | {"mechanism": "gradient_descent"},
        LINEAR | {"formula": "y ~ C(g) + x:b"},
    ],
    "by influence": [
        *each(LINEAR | INFLUENCE, tuning=[None, 0.1, 100.0]), LOGISTIC | INFLUENCE,
        LINEAR | ASYMPTOTIC, LOGISTIC | ASYMPTOTIC, {"kind": "location_scale"} | Y | ASYMPTOTIC,
    ],
    "glm": [
        *each(LOGISTIC, tuning=[None, 0.1, 100.0]),
        *each({"kind": "glm", "formula": "k ~ x"}, family=["poisson", "gamma", "gaussian"]),
        *each({"kind": "glm", "formula": "k ~ x", "family": "negative_binomial"},
            dispersion=[1e-9, 0.001, 100.0]),
    ],
    "hypothesis_test": [
        *each({"kind": "hypothesis_test", "formula": "y ~ x"}, test=["wald", "score", "lr"],
              hypothesis=[None, ["x = 0"], ["x = 1e300"]]),
        {"kind": "hypothesis_test", "formula": "b ~ x", "family": "binomial",
            "hypothesis": ["x = 0"]},
    ],
    "t_test": [
        *each({"kind": "t_test", "column": "y"}, group=[None, "b"], popmean=[None, 5e-324, FAR]),
        {"kind": "t_test", "columns": ["y", "x"], "paired": True},
    ],
    "tests of groups": list(each(
        {"group": "g"} | Y, kind=["anova", "kruskal"], levels=[None, ["u", "w"]],
        confidence_level=[None, 0.9999],
    )),
    "tests of two groups": list(each({"group": "b"}, kind=["mann_whitney", "ks_test"],
            column=["y", "k"])),
    "roc": list(each(
        {"kind": "roc", "score": "y", "outcome": "b"}, positive=["high", "low"],
        thresholds=[[], [5e-324], [0.5, 0.5]],
    )),
    "treatment_effect": list(each(
        {"kind": "treatment_effect", "y": "y", "treatment": "b", "covariates": "x"},
        estimand=["ate", "overlap"],
        propensity=[[FAR, -FAR], [0.0, 5e-324]], outcome=[[FAR, 1.0, FAR], [0.0, 0.0, 1.0]],
        trim=[0.001, 0.25],
    )),
    "staggered_did": list(each(
        {"kind": "staggered_did", "y": "y", "treatment_time": "b", "time": "k"},
        never=[None, FAR, 5e-324], last=[None, 3],
    )),
    "proportion_test": list(each({"kind": "proportion_test", "column": "b"},
            value=[1e-300, 0.5, 1 - 1e-16])),
    "correlation": list(each(
        {"kind": "correlation"}, columns=[["y", "x"], ["k", "y"]],
        method=["pearson", "spearman", "kendall"],
    )),
    "ks_test": list(each(
        {"kind": "ks_test", "law": "normal"} | Y,
        parameters=[[0, 1], [FAR, 5e-324], [-FAR, FAR], [0, 5e-324]],
    )),
    "subsample_aggregate": list(each(
        {"kind": "subsample_aggregate"}, model=[LINEAR, LOGISTIC, {"kind": "location_scale"} | Y],
        blocks=[None, 2, 5], parameter_bounds=[None, [[-FAR, FAR], [0.0, 5e-324]]],
    )),
}  # fmt: skip


def columns(lower: Any, upper: Any) -> tuple[Any, Any, Any, Any, Any]:
    return (
        Column("y", ColumnKind.NUMERIC, lower, upper),
        Column("x", ColumnKind.NUMERIC, lower, upper),
        Column("k", ColumnKind.INTEGER, 0, 12),
        Column("b", ColumnKind.BOOLEAN, 0, 1),
        Column("g", ColumnKind.CATEGORICAL, 0, 2, ("u", "v", "w")),
    )


def facts_of(n: int, bounds: Any, unit_rows: int = 1) -> DatasetFacts:
    unit = Unit("person", unit_rows) if unit_rows > 1 else Unit()
    policy = Policy(tiers=("unconditional", "conditional"))
    return DatasetFacts("d", "d", 1, "v", n, Schema(columns(*bounds), unit), None, policy)


def planned(facts: Any, query: Any, epsilon: Any, delta: Any) -> Plan | None:
    """The plan, or None where it is refused in words."""
    document = {"dataset": "d", "query": query, "privacy": {"epsilon": epsilon, "delta": delta}}
    try:
        ask = RequestBody.model_validate(document).ask()
        plan = planning.plan(facts, ask.query, ask.privacy)
    except ValidationError:
        return None
    except InvalidRequest as refused:
        return _in_words(refused)
    assert 0 < plan.deadline_ms < 10**9
    assert plan.cost.epsilon <= np.ceil(epsilon * 1e9 * (1 + 1e-12))
    json.dumps(forecast_json(plan), allow_nan=False)
    return plan


def _in_words(refused: Any) -> None:
    assert len(refused.detail) > 20


def tables(facts: Any) -> Iterator[dict[str, np.ndarray]]:
    """Constant, at the ends, and spread over the bounds."""
    n, rng = facts.slots, seeded(facts.n)
    ends = {c.name: (c.lower, c.upper) for c in facts.schema.columns}
    yield {name: np.full(n, low) for name, (low, _) in ends.items()}
    yield {name: np.where(np.arange(n) % 2, low, high) for name, (low, high) in ends.items()}
    whole = {"k", "b", "g"}
    found = {}
    for name, (low, high) in ends.items():
        values = low + rng.random(n) * min(high - low, 1e308)
        found[name] = np.clip(np.rint(values) if name in whole else values, low, high)
    yield found


class Served:
    """A table behind an engine, and what its steps cost by what their noise is drawn at."""

    def __init__(self, facts: Any, arrays: Any) -> None:
        self.n, self._facts, self._arrays = facts.slots, facts, arrays

    def batches(self, names: Any) -> Iterator[Any]:
        cells = {k: pa.array(self._arrays[k]) for k in names}
        yield Private(pa.RecordBatch.from_pydict(cells | self._absent()))

    def _absent(self) -> dict[str, pa.Array]:
        """The places without a row: persons have none, one, two … of theirs."""
        unit = self._facts.schema.unit
        if not unit.many_rows:
            return {}
        person, place = np.divmod(np.arange(self.n), unit.max_rows)
        return {ABSENT_MASK: pa.array(place >= (person + 1) % (unit.max_rows + 1))}

    def confirm(self, reservation: Any) -> bool:
        return True

    def status(self, plan: Any) -> Any:
        engine = LocalEngine(lambda _: self, self, cache_bytes=1 << 22, threads=1, block_rows=512)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return engine.execute(plan, Reservation("r", "v", plan.cost, "")).status
        finally:
            engine.close()


def billed(step: Step, plan: Plan) -> PrivacyCost:
    """In the place of the engine's: what the noise of sums and trees really costs is within their
    ρ.
    """
    for part in step.parts if isinstance(step, SumStep) else ():
        if isinstance(part, QuantileTree):
            rho = quantile_tree.billed_rho(part)
        elif isinstance(part, RunningCounts):
            noise = DiscreteGaussian(running_counts.scale(part))
            rho = noise.rho(running_counts.sensitivity(part))
        else:
            by: Any = running_counts if isinstance(part, RunningCounts) else noisy_sum
            rho = DiscreteGaussian(by.scale(part)).rho(by.sensitivity(part))
        assert rho * RHO_UNITS <= part.rho * (1 + 1e-12)
    return COST(step, plan)


COST = local._cost


def refused_or_replied(
    facts: Any, query: Any, epsilon: Any, delta: Any, only: Any = slice(None)
) -> int:
    """How many tables had a reply, or none, in the real sense. only: which of the tables."""
    plan, count = planned(facts, query, epsilon, delta), 0
    for table in list(tables(facts))[only] if plan else ():
        assert Served(facts, table).status(plan) in {"reply", "no_reply"}, (query, epsilon, delta)
        count += 1
    return count


def some(queries: Any, share: Any) -> Any:
    """About 1/share of them, evenly; all of them in the audit."""
    return queries[:: max(1, round(len(queries) * share))]


def in_turn(kind: Any, bounds: Any) -> Any:
    """Some of a kind's queries; each fit, which takes a hundred times as long, at a third of the
    bounds.
    """
    chosen = some(QUERIES[kind], 0.1)
    return chosen[list(BOUNDS).index(bounds) % 3 :: 3] if kind in FITS else chosen


def one(number: Any) -> Any:
    """One table, each in its turn."""
    return slice(number % 3, number % 3 + 1)


ALL = slice(None)
FITS = {"linear_regression", "glm", "by influence", "hypothesis_test", "subsample_aggregate"}


AUDIT = pytest.param(True, marks=pytest.mark.audit)


@pytest.mark.slow
@pytest.mark.sample(16)
@pytest.mark.parametrize("whole", [False, AUDIT])
@pytest.mark.parametrize("kind", QUERIES)
def test_any_epsilon_and_delta_are_refused_or_give_a_mechanism_that_replies(
    kind: str, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "_cost", billed)
    facts, queries = facts_of(60, BOUNDS["usual"]), QUERIES[kind]
    pairs = list(product(EPSILONS, DELTAS))
    replies = sum(
        refused_or_replied(facts, query, *pair, only=one(j) if kind in FITS and not whole else ALL)
        for k, query in enumerate(queries if whole else some(queries, 0.5))
        for j, pair in enumerate(pairs if whole else pairs[k % 3 :: 3])
    )
    assert replies > 5


@pytest.mark.slow
@pytest.mark.sample(80)
@pytest.mark.parametrize("whole", [False, AUDIT])
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("kind", QUERIES)
def test_any_bounds_and_parameters_are_refused_or_give_a_mechanism_that_replies(
    kind: str, bounds: str, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "_cost", billed)
    turn = list(BOUNDS).index(bounds) % 2
    shapes = ((1, 1), (60, 1), (60, 30)) if whole else (((60, 1), (1, 2))[turn],)
    for n, unit_rows in shapes:
        facts = facts_of(n, BOUNDS[bounds], unit_rows)
        for j, query in enumerate(QUERIES[kind] if whole else in_turn(kind, bounds)):
            only = one(j + list(BOUNDS).index(bounds)) if kind in FITS and not whole else ALL
            refused_or_replied(facts, query, 4.0, 1e-6, only=only)


@pytest.mark.slow
@pytest.mark.sample(8)
@pytest.mark.parametrize("bounds", BOUNDS)
def test_a_profile_of_any_bounds_is_a_reply(bounds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_cost", billed)
    for epsilon, (n, unit_rows) in product((1e-3, 50.0), ((1, 1), (60, 30))):
        facts = facts_of(n, BOUNDS[bounds], unit_rows)
        plan = planning.plan(facts, ProfileQuery(), Privacy(epsilon, 1e-6))
        for table in tables(facts):
            assert Served(facts, table).status(plan) == "reply"
