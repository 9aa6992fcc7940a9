# SPDX-License-Identifier: Apache-2.0
"""No question that can be planned fails: every number of every example of every kind, as far out as
its field takes it.

A release that fails is charged and says nothing. So each such question is refused when it is
planned, in words, or its computation ends on any table, with a reply or No Reply. The questions are
made from the registry: a new kind needs no line here.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Plan
from reticent_server.domain.query import Privacy
from reticent_server.domain.reservation import Reservation
from reticent_server.domain.schema import Unit
from reticent_server.domain.steps import PowerSum
from reticent_server.engine.local import LocalEngine
from reticent_server.errors import InvalidPrivacy, InvalidRequest
from reticent_server.kinds import KINDS
from reticent_server.mechanisms.registry import drawable
from reticent_server.pipeline import planning
from reticent_server.vault.places import ABSENT_MASK
from reticent_server.web.bodies import RequestBody
from support.attacks.recorder import Served
from support.installations.small import Installation, copied, opened
from support.kinds.examples import QUERIES, TWO_COLUMNS, with_second_clusters
from support.seeds import seeded

N = 40
FAR = (0.0, 5e-324, 1e-300, -1e-18, 1e-18, 1e-9, -1.0, 1 - 1e-16, 1e9, 1e18, -1e300, 1e300)
"""What a number is replaced by: about 0, about 1, and as far as floats go."""
WHOLE = (0, 1, 2, 7, 64, 10**6)
PRIVACIES = ((4.0, 1e-6), (0.05, 1e-10), (100.0, 0.01), (1e-3, 1e-18))
"""(ε, δ): usual ones, small ones, and the ends of what is taken."""

# variants of an example in the short form, spread over all of them; a fit takes some 10 ms
SHORT = 12
MOST = 120  # in the long form


@pytest.fixture(scope="module")
def facts(
    installation_template: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DatasetFacts]:
    """Those of `people`, of N records."""
    directory = tmp_path_factory.mktemp("extreme") / "installation"
    with copied(installation_template, directory) as own, opened(own.settings) as services:
        yield replace(services.catalog.facts("people"), n=N)


def numbers(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every number of a question, with its place."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in pairs:
            yield from numbers(inner, (*path, key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value


def with_value(query: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = json.loads(json.dumps(query))
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


def far_out(query: Any) -> Iterator[Any]:
    """The question, one number at a time at each of the far values, and then all of them at
    once.
    """
    yield query
    found = list(numbers(query))
    for path, value in found:
        for far in WHOLE if isinstance(value, int) else FAR:
            yield with_value(query, path, far)
    for far in FAR if found else ():
        every = query
        for k, (path, value) in enumerate(found):
            every = with_value(
                every, path, int(abs(far) > 1) + k if isinstance(value, int) else far * k
            )
        yield every


def spread(variants: list[Any], most: int) -> list[Any]:
    """At most `most` of them, evenly."""
    at = np.unique(np.linspace(0, len(variants) - 1, min(most, len(variants))).astype(int))
    return [variants[k] for k in at]


def planned(facts: DatasetFacts, query: Any, epsilon: float, delta: float) -> Plan | None:
    """The plan, or None where it is refused in words."""
    document = {
        "dataset": "people",
        "query": query,
        "privacy": {"epsilon": epsilon, "delta": delta},
    }
    try:
        ask = RequestBody.model_validate(document).ask()
        return planning.plan(facts, ask.query, ask.privacy)
    except ValidationError:
        return None
    except InvalidRequest as refused:
        assert len(refused.detail) > 20  # noqa: PT017 - of what is refused, and of nothing else
        return None


def table(facts: DatasetFacts, number: int) -> dict[str, Any]:
    """Constant; at both ends; or spread over the bounds: in turn."""
    rng, every = seeded(number), {}
    for c in facts.schema.columns:
        at = (np.zeros(N), np.arange(N) % 2, rng.random(N))[number % 3]
        values = c.lower + at * (c.upper - c.lower)
        every[c.name] = values if c.kind == "numeric" else np.rint(values)
        if c.missing:
            every[f"{c.name}:missing"] = np.zeros(N, bool)
    return every


def status(facts: DatasetFacts, plan: Plan, number: int) -> str:
    served = Served(facts, table(facts, number))
    engine = LocalEngine(lambda _: served, served, cache_bytes=0, threads=1, block_rows=64)
    try:
        return engine.execute(plan, Reservation("r", facts.version_id, plan.cost, "")).status
    finally:
        engine.close()


@pytest.mark.sample(32)
@pytest.mark.parametrize("most", [SHORT, pytest.param(MOST, marks=pytest.mark.audit)])
@pytest.mark.parametrize("name", QUERIES)
def test_no_question_that_can_be_planned_fails(facts: DatasetFacts, name: str, most: int) -> None:
    ends(facts, QUERIES[name], most)


@pytest.mark.parametrize("name", TWO_COLUMNS)
def test_nor_one_by_two_columns_of_clusters(facts: DatasetFacts, name: str) -> None:
    """On constant columns, on ends, and on columns that cross."""
    ends(with_second_clusters(facts), TWO_COLUMNS[name], SHORT)


def ends(facts: DatasetFacts, asked: Any, most: int) -> None:
    for number, query in enumerate(spread(list(far_out(asked)), most)):
        privacy = PRIVACIES[number % len(PRIVACIES)]
        plan = planned(facts, query, *privacy)
        if plan is not None:
            assert status(facts, plan, number // 4) in {"reply", "no_reply"}, (query, privacy)


MANY = 2000
"""Records, so many that a profile of the query's own finds the one value that a column has."""
ALIKE = {
    "upper ends": lambda low, high: np.full(MANY, high),
    "lower ends": lambda low, high: np.full(MANY, low),
    "a value between": lambda low, high: np.full(MANY, low + 0.3 * (high - low)),
    "one differs": lambda low, high: np.where(np.arange(MANY) == 7, low, high),
    "half": lambda low, high: np.where(np.arange(MANY) % 2, low, high),
}
"""Columns whose records are alike; (low, high): the bounds."""
QUICK = ("describe 0", "glm 12", "cumulative_incidence 0")
"""Questions whose steps follow what was released: tried in the short form, too."""


@pytest.mark.sample(6)
@pytest.mark.parametrize("alike", ALIKE)
@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.audit) for name in QUERIES],
)
def test_no_table_makes_a_question_fail(facts: DatasetFacts, name: str, alike: str) -> None:
    """Steps follow what was released before, and so does their price: of a column with one value,
    too, it is no more than what was paid.
    """
    ends_alike(facts, QUERIES[name], alike)


@pytest.mark.slow
@pytest.mark.sample(5)
@pytest.mark.parametrize("alike", ALIKE)
@pytest.mark.parametrize("name", TWO_COLUMNS)
def test_nor_where_two_columns_of_clusters_are_alike(
    facts: DatasetFacts, name: str, alike: str
) -> None:
    ends_alike(with_second_clusters(facts), TWO_COLUMNS[name], alike)


def ends_alike(facts: DatasetFacts, query: Any, alike: str) -> None:
    facts = replace(facts, n=MANY)
    rows: dict[str, Any] = {}
    for c in facts.schema.columns:
        values = ALIKE[alike](c.lower, c.upper)
        rows[c.name] = values if c.kind == "numeric" else np.rint(values)
        if c.missing:
            rows[f"{c.name}:missing"] = np.zeros(MANY, bool)
    served = Served(facts, rows)
    engine = LocalEngine(lambda _: served, served, cache_bytes=0, threads=1, block_rows=1 << 12)
    try:
        for privacy in ((1.0, 1e-6), (100.0, 1e-6)):
            plan = planned(facts, query, *privacy)
            if plan is not None:
                reservation = Reservation("r", facts.version_id, plan.cost, "")
                assert engine.execute(plan, reservation).status in {"reply", "no_reply"}, privacy
    finally:
        engine.close()


NOBODY = ("did 0", "did 1", "event_study 0", "linear_regression 0", "glm 0", "study 0")
"""Questions that are tried of hardly any records in use in the short form, too."""


@pytest.mark.sample(6)
@pytest.mark.parametrize("persons", [(12, 3), (50, 3), (50, 8), (1, 3), (40, 1)])
@pytest.mark.parametrize(
    "name",
    [name if name in NOBODY else pytest.param(name, marks=pytest.mark.audit) for name in QUERIES],
)
def test_nobody_in_use_makes_no_question_fail(
    facts: DatasetFacts, name: str, persons: tuple[int, int]
) -> None:
    """Of no record that meets the condition, or of one in a hundred, nothing is told, and of a
    model no interval.
    """
    n, m = persons
    unit = Unit("person", m) if m > 1 else Unit()
    facts = replace(facts, n=n, schema=replace(facts.schema, unit=unit))
    rng, rows = seeded(8), {}
    for c in facts.schema.columns:
        values = c.lower + rng.random(n * m) * (c.upper - c.lower)
        rows[c.name] = values if c.kind == "numeric" else np.rint(values)
        if c.missing:
            rows[f"{c.name}:missing"] = np.zeros(n * m, bool)
    if m > 1:
        rows[ABSENT_MASK] = np.zeros(n * m, bool)
    served = Served(facts, rows)
    engine = LocalEngine(lambda _: served, served, cache_bytes=0, threads=1, block_rows=64 * m)
    try:
        for epsilon, where in product((0.05, 1.0, 5.0), ("x > 5", "x > 4.9")):
            plan = planned(facts, QUERIES[name] | {"where": where}, epsilon, 1e-6)
            if plan is None:
                continue
            release = engine.execute(plan, Reservation("r", facts.version_id, plan.cost, ""))
            assert release.status in {"reply", "no_reply"}, (epsilon, where)
            if name in NOBODY and where == "x > 5" and release.result:
                ends = release.result.get("confidence_intervals") or []
                assert not any(end is not None for pair in ends for end in pair)
    finally:
        engine.close()


RESPONSES = {"identity": "y", "logit": "b", "log": "k"}


@pytest.mark.sample(12)
@pytest.mark.parametrize("slope", [0.0, 5e-324, 1e-300, 1e-18, 1e-16, 1e-12, 1e-3, 1e3, 1e300])
@pytest.mark.parametrize("link", RESPONSES)
def test_fitted_values_that_are_nearly_alike_are_refused_or_binned(
    facts: DatasetFacts, link: str, slope: float
) -> None:
    """Predictors that differ may have one mean: exp(10⁻¹⁸ x) is 1 for every x of a table."""
    formula = f"{RESPONSES[link]} ~ x"
    query = {"kind": "binned_residuals", "formula": formula, "link": link}
    plan = planned(facts, query | {"coefficients": [0.0, slope]}, 4.0, 1e-6)
    assert plan is not None or slope < 1e-3
    assert plan is None or all(status(facts, plan, k) == "reply" for k in range(3))


@pytest.mark.sample(4)
@pytest.mark.parametrize("scale", [5e-324, 1e-200, 1e200, 1e308])
@pytest.mark.parametrize("link", RESPONSES)
def test_residuals_of_any_scale_are_binned(facts: DatasetFacts, link: str, scale: float) -> None:
    formula = f"{RESPONSES[link]} ~ x"
    query = {"kind": "binned_residuals", "formula": formula, "link": link, "scale": scale}
    plan = planned(facts, query | {"coefficients": [0.0, 0.5], "variance_power": 1.0}, 4.0, 1e-6)
    assert plan is not None
    assert all(status(facts, plan, k) == "reply" for k in range(3))


def test_noise_that_does_not_fit_into_64_bits_is_refused(
    facts: DatasetFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 10⁶ rows a person and a ρ of 3·10⁻¹²; and in a plan, before it is charged."""
    part = PowerSum(((0.0, 1.0),), 3, 10**6)
    assert not drawable(part)
    assert drawable(replace(part, rho=10**6))
    kind = next(kind for kind in KINDS if kind.name == "sum")
    plan = planned(facts, QUERIES["sum 0"], 1.0, 1e-6)
    assert plan is not None
    monkeypatch.setattr(type(plan.planned), "parts", (part,))
    with pytest.raises(InvalidPrivacy, match="too small for as many rows"):
        planning.plan(facts, kind.examples[0], Privacy(1.0, 1e-6))
