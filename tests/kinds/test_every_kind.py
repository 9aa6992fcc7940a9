# SPDX-License-Identifier: Apache-2.0
"""What every kind is held to, by its examples: contract, bad input, degenerate tables, plan =
charge, docs.

tests/contract/test_client_kinds.py asks, shows, keeps and draws each kind through the client;
tests/privacy/test_outside_audit.py attacks it; tests/server/pipeline/test_extreme_parameters.py
attacks its parameters.
"""

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from reticent_server.domain.plan import Planned
from reticent_server.domain.query import Privacy, query_json
from reticent_server.domain.reservation import Reservation
from reticent_server.domain.results import result_json
from reticent_server.engine.local import LocalEngine
from reticent_server.kinds import KINDS
from reticent_server.kinds.registry import by_name, kind_of, stored_query
from reticent_server.pipeline import planning
from reticent_server.pipeline.services import Services
from support.attacks.recorder import Served
from support.documents.code_blocks import ROOT
from support.installations.small import Api, Installation, opened, request_body
from support.kinds.examples import QUERIES
from support.seeds import seeded

EXAMPLES = list(QUERIES)
DEGENERATE = {
    "one record's row again and again": lambda n, rng: 0.0 * rng.normal(size=n),
    "two values": lambda n, rng: 1.0 * (rng.random(n) < 0.5),
    "one outlier": lambda n, rng: 5.0 * (np.arange(n) == 0),
}


@pytest.fixture(scope="module")
def shared(
    installation_template: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Services]:
    """One installation for all of these: none of them needs a fresh ledger."""
    from support.installations.small import copied

    directory = tmp_path_factory.mktemp("kinds") / "installation"
    with copied(installation_template, directory) as own, opened(own.settings) as services:
        yield services


@pytest.fixture(scope="module")
def api(shared: Services, installation_template: Installation) -> Api:
    return Api(shared, installation_template.keys["ana"])


def spent(api: Api) -> Any:
    return api.get("/v1/budget").json()["accounts"][0]["spent"]


@pytest.mark.sample(24)
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_planned_charged_and_answered_as_it_says(api: Api, name: str) -> None:
    body = request_body(QUERIES[name], epsilon=2.0)
    plan = api.post("/v1/plans", body)
    assert plan.status_code == 200, plan.text
    before = spent(api)["rho"]
    reply = api.post("/v1/releases", body)
    assert reply.status_code == 201, reply.text
    release = reply.json()
    assert release["status"] in {"reply", "no_reply"}
    assert release["charged"] == plan.json()["cost"]
    assert release["guarantee"] == plan.json()["guarantee"]
    assert release["query"] == QUERIES[name] | release["query"]
    assert spent(api)["rho"] - before == pytest.approx(release["charged"]["rho"], abs=2e-9)
    if release["status"] == "reply":
        described(QUERIES[name]["kind"], release["result"])


def described(kind: str, result: Any) -> None:
    """The result has the fields of its class, no other, and of their types."""
    read = TypeAdapter(by_name()[kind].result).validate_python(result)
    assert json.loads(json.dumps(result_json(read))) == result


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_stored_question_is_the_one_that_was_asked(name: str) -> None:
    query = stored_query(QUERIES[name])
    assert query_json(query) == QUERIES[name]
    assert query in kind_of(query).examples
    assert hash(query) == hash(stored_query(json.loads(json.dumps(query_json(query)))))


def wrong(query: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The question with one field that no kind takes, field by field."""
    yield query | {"surprise": 1}
    for name in query:
        if name != "kind":
            yield query | {name: {"not": "this"}}
            yield query | {name: -1e400}
    for name in ("column", "formula"):
        if name in query:
            yield query | {name: "nowhere" if name == "column" else "nowhere ~ x"}
            yield query | {name: ""}
    if "columns" in query:
        yield query | {"columns": ["nowhere", "y"]}


@pytest.mark.sample(32)
@pytest.mark.parametrize("name", EXAMPLES)
def test_bad_input_is_a_problem_that_costs_nothing(api: Api, name: str) -> None:
    before = spent(api)
    for query in wrong(QUERIES[name]):
        content = json.dumps(request_body(query, epsilon=1.0))
        reply = api.send(
            "POST", "/v1/releases", content=content, headers={"Content-Type": "application/json"}
        )
        assert reply.status_code == 422, (query, reply.text)
        problem = reply.json()
        assert problem["code"].startswith("invalid_")
        assert "nowhere" not in reply.text
    assert spent(api) == before


@pytest.mark.sample(40)
@pytest.mark.parametrize("shape", DEGENERATE)
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_degenerate_table_has_an_answer(shared: Services, name: str, shape: str) -> None:
    """A reply or No Reply: that a fit fails on a table would tell of the table."""
    facts = shared.catalog.facts("people")
    rng = seeded(3)
    values = {c.name: DEGENERATE[shape](facts.n, rng) for c in facts.schema.columns}
    columns = {c.name: np.clip(values[c.name], c.lower, c.upper) for c in facts.schema.columns}
    masks = {
        f"{c.name}:missing": np.zeros(facts.n, bool) for c in facts.schema.columns if c.missing
    }
    plan = planning.plan(facts, stored_query(QUERIES[name]), Privacy(2.0, 1e-6))
    served = Served(facts, columns | masks)
    engine = LocalEngine(lambda _: served, served, cache_bytes=0, threads=1, block_rows=128)
    try:
        release = engine.execute(plan, Reservation("r", facts.version_id, plan.cost, ""))
    finally:
        engine.close()
    assert release.status in {"reply", "no_reply"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_says_all_of_itself(kind: Any) -> None:
    assert kind.query.__doc__
    assert kind.examples
    assert {f.name for f in fields(kind.query)} >= {"kind"}
    assert all(type(example) is kind.query for example in kind.examples)
    page = ROOT / f"docs/kinds/{kind.page}.md"
    assert f"`{kind.name}`" in page.read_text("utf-8") or not kind.for_analysts


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_plan_is_complete(shared: Services, name: str) -> None:
    """No attribute of a plan is looked for: it has all of them, and its cost is what its parts
    cost.
    """
    facts = shared.catalog.facts("people")
    plan = planning.plan(facts, stored_query(QUERIES[name]), Privacy(2.0, 1e-6))
    planned = plan.planned
    assert isinstance(planned, Planned)
    assert planned.passes >= 1
    assert planned.rho <= plan.cost.rho
    assert set(planned.columns) <= {column.name for column in facts.schema.columns}
    assert all(part.unit_rows == 1 for part in planned.parts)
    assert planned.mechanism
    assert planned.reference
    json.dumps(dict(planned.forecast))
    assert plan.deadline_ms == planned.deadline_ms(facts.n) > 0
