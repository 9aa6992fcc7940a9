# SPDX-License-Identifier: Apache-2.0
"""Questions about persons from end to end: every kind, the same cost as with one row a person, and
refusals.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from reticent_server.cli.dataset_load import load_dataset
from reticent_server.domain.query import Privacy
from reticent_server.errors import CuratorError
from reticent_server.kinds.registry import stored_query
from reticent_server.pipeline import planning
from reticent_server.pipeline.services import Services
from support.installations.small import SCHEMA, Api, Installation, copied, opened
from support.kinds.examples import QUERIES

M = 3
UNIT = f"unit: {{column: person, max_rows: {M}}}\n"
VISITS = SCHEMA.replace("columns:\n", UNIT + "columns:\n  t: {kind: integer, lower: 0, upper: 9}\n")
FEATURES = {
    "y": "mean(y, none=0)",
    "x": "last(x, by=t, none=0)",
    "k": "max(k, none=0)",
    "g": 'first(g, by=t, none="a")',
    "b": "any(b)",
    "m": "mean(m)",
}
"""The columns of `people` again, of a table in which each of the persons has one to three rows."""


def write_visits(people: Path, visits: Path) -> None:
    """Person i's row of `people` once or more, at the times 1, 2, …, in no order of persons."""
    header, *lines = people.read_text().splitlines()
    rows = [f"{i},{t},{line}" for i, line in enumerate(lines) for t in range(1 + i % M)]
    rows.sort(key=lambda row: row[::-1])
    visits.write_text("\n".join([f"person,t,{header}", *rows]) + "\n")


@pytest.fixture(scope="module")
def services(
    installation_template: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Services]:
    directory = tmp_path_factory.mktemp("persons") / "installation"
    with copied(installation_template, directory) as own:
        write_visits(directory / "people.csv", directory / "visits.csv")
        (directory / "visits.yaml").write_text(VISITS)
        load_dataset(
            own.settings,
            "visits",
            directory / "visits.csv",
            directory / "visits.yaml",
        )
        with opened(own.settings) as services:
            analyst = services.access.authenticate(own.keys["ana"])
            assert analyst is not None
            services.access.grant(analyst.id, "visits", by="t")
            budget: Any = {"epsilon": 1e3, "delta": 0.01, "rule": "zcdp", "by": "t"}
            services.ledger.set_population_cap("visits", **budget)
            services.ledger.set_analyst_budget(analyst.id, "visits", "visits", **budget)
            yield services


@pytest.fixture(scope="module")
def api(services: Services, installation_template: Installation) -> Api:
    return Api(services, installation_template.keys["ana"])


def body(query: dict[str, Any], dataset: str = "visits", **privacy: float) -> dict[str, Any]:
    return {"dataset": dataset, "query": query, "privacy": privacy or {"epsilon": 2.0}}


@pytest.mark.sample(32)
@pytest.mark.parametrize("name", QUERIES)
def test_every_kind_answers_about_persons(api: Api, name: str) -> None:
    asked = body(QUERIES[name] | {"persons": FEATURES})
    plan = api.post("/v1/plans", asked)
    assert plan.status_code == 200, plan.text
    reply = api.post("/v1/releases", asked)
    assert reply.status_code == 201, reply.text
    release = reply.json()
    assert release["status"] in {"reply", "no_reply"}
    assert release["charged"] == plan.json()["cost"]
    assert release["guarantee"] == plan.json()["guarantee"]
    assert release["query"]["persons"] == FEATURES
    assert (
        "all rows of one person by any others (at most 3, or none)"
        in release["guarantee"]["statement"]
    )
    assert release["guarantee"]["unit"] == "person"


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", QUERIES)
def test_a_question_about_persons_is_that_about_one_row_each(services: Services, name: str) -> None:
    """The same parts as on the table `people`, so the same noise: nothing is multiplied by m."""
    query, privacy = stored_query(QUERIES[name]), Privacy(2.0, 1e-6)
    people = planning.plan(services.catalog.facts("people"), query, privacy)
    asked = stored_query(QUERIES[name] | {"persons": FEATURES})
    persons = planning.plan(services.catalog.facts("visits"), asked, privacy)
    assert persons.cost == people.cost
    assert persons.planned.parts == people.planned.parts
    assert all(part.unit_rows == 1 for part in persons.planned.parts)
    assert persons.deadline_ms > people.deadline_ms


def test_what_is_released_is_near_the_truth(api: Api) -> None:
    persons = {"visits": "count()", "late": "last(t, by=t)", "sum": "sum(k)"}
    for column, truth in (("visits", 799 / 400), ("late", 399 / 400)):
        asked = body({"kind": "mean", "column": column, "persons": persons}, epsilon=50.0)
        result = api.post("/v1/releases", asked).json()["result"]
        assert result["value"] == pytest.approx(truth, abs=0.05)
        assert result["n"] == 400


def test_the_columns_of_a_view_are_free_to_see(api: Api) -> None:
    reply = api.post(
        "/v1/datasets/visits/persons", {"persons": {"visits": "count()", "m": "mean(m)"}}
    )
    assert reply.status_code == 200, reply.text
    view = reply.json()
    assert (view["name"], view["n"], view["unit"]) == (
        "visits",
        400,
        {"column": "person", "max_rows": 1, "gaps": False},
    )
    plain = {
        "lower": 0.0,
        "levels": None,
        "date": False,
        "derived": None,
        "role": None,
        "label": None,
    }
    plain |= {"ordered": False}
    assert view["schema"]["columns"] == {
        "visits": plain | {"kind": "integer", "upper": 3.0, "missing": []},
        "m": plain | {"kind": "numeric", "upper": 1.0, "missing": [""]},
    }
    assert view["features"] == {"visits": "count()", "m": "mean(m)"}
    assert view["profile"] is None


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("dataset", "persons", "code"),
    [
        ("visits", {"v": "count("}, "invalid_formula"),
        ("visits", {"v": "count(secret_thing)"}, "invalid_formula"),
        ("visits", {"1 secret_thing": "count()"}, "invalid_query"),
        ("visits", {}, "invalid_query"),
        ("people", {"v": "count()"}, "invalid_query"),
        ("visits", {"v": 3}, "invalid_query"),
        ("visits", {"v": ""}, "invalid_query"),
        ("visits", ["count()"], "invalid_query"),
        ("visits", {f"v{k}": "count()" for k in range(65)}, "invalid_query"),
    ],
)
def test_bad_features_are_refused_without_a_charge(
    api: Api, dataset: str, persons: Any, code: str
) -> None:
    before = api.get("/v1/budget").json()
    for path in ("/v1/plans", "/v1/releases"):
        reply = api.post(path, body({"kind": "count", "persons": persons}, dataset))
        assert (reply.status_code, reply.json()["code"]) == (422, code), reply.text
        assert "secret_thing" not in reply.text
    assert api.post(f"/v1/datasets/{dataset}/persons", {"persons": persons}).status_code == 422
    assert api.get("/v1/budget").json() == before


def test_features_inside_a_model_are_refused(api: Api) -> None:
    model = {"kind": "glm", "formula": "b ~ x", "family": "binomial", "persons": FEATURES}
    for persons in ({}, {"persons": FEATURES}):
        reply = api.post(
            "/v1/plans", body({"kind": "subsample_aggregate", "model": model} | persons)
        )
        assert (reply.status_code, reply.json()["code"]) == (422, "invalid_query")
        assert "beside the question's kind" in reply.json()["detail"]


def test_nobody_without_a_grant_sees_the_view(
    services: Services, installation_template: Installation
) -> None:
    other = Api(services, installation_template.keys["bob"])
    assert (
        other.post("/v1/datasets/visits/persons", {"persons": {"v": "count()"}}).status_code == 404
    )


@pytest.mark.slow
def test_nothing_public_tells_how_many_rows_there_are(
    services: Services, installation_template: Installation, tmp_path: Path
) -> None:
    """A neighbour, in which one person has m rows in place of one, has the same facts and the same
    plans.
    """
    with copied(installation_template, tmp_path / "neighbour") as own:
        visits = own.directory / "visits.csv"
        write_visits(own.directory / "people.csv", visits)
        header, *rows = visits.read_text().splitlines()
        first = [row for row in rows if row.startswith("0,")]
        more = [row.replace("0,0,", f"0,{t},", 1) for row in first for t in range(1, M + 2)]
        visits.write_text("\n".join([header, *rows, *more]) + "\n")
        (own.directory / "visits.yaml").write_text(VISITS)
        load_dataset(own.settings, "visits", visits, own.directory / "visits.yaml")
        with opened(own.settings) as neighbour:
            left, right = services.catalog.facts("visits"), neighbour.catalog.facts("visits")
            assert replace(left, version_id="") == replace(right, version_id="")
            for name in QUERIES:
                query = stored_query(QUERIES[name] | {"persons": FEATURES})
                plans = [planning.plan(f, query, Privacy(1.0, 1e-6)) for f in (left, right)]
                assert plans[0].deadline_ms == plans[1].deadline_ms
                assert plans[0].cost == plans[1].cost
                assert asdict(plans[0].guarantee) == asdict(plans[1].guarantee)


def test_the_curator_declares_features(installation_template: Installation, tmp_path: Path) -> None:
    with copied(installation_template, tmp_path / "declared") as own:
        visits, schema = own.directory / "visits.csv", own.directory / "visits.yaml"
        write_visits(own.directory / "people.csv", visits)
        declared = 'persons:\n  visits: "count()"\n  age: "max(k, none=0)"\n'
        schema.write_text(VISITS + declared)
        loaded = load_dataset(own.settings, "visits", visits, schema)
        assert dict(loaded.facts.schema.features)["visits"] == "count()"
        query = stored_query({"kind": "mean", "column": "age", "persons": {"late": "max(t)"}})
        ready = planning.plan(loaded.facts, query, Privacy(1.0))
        assert ready.view is not None
        assert [c.name for c in ready.view.schema.columns] == ["visits", "age", "late"]
        with opened(own.settings) as services:
            stored = services.catalog.facts("visits")
            assert stored == loaded.facts
        for text, problem in (
            ('persons: {v: "count("}\n', "persons"),
            ("persons: {v: 3}\n", "names to texts"),
            ("persons: [v]\n", "names to texts"),
        ):
            schema.write_text(VISITS + text)
            with pytest.raises(CuratorError, match=problem):
                load_dataset(own.settings, "visits", visits, schema)
        schema.write_text(SCHEMA + declared)
        with pytest.raises(CuratorError, match="so `unit` must be"):
            load_dataset(own.settings, "visits", visits, schema)


def test_a_retry_gives_the_same_release(api: Api) -> None:
    asked = body(
        {"kind": "count", "where": "visits >= 2", "persons": {"visits": "count()", "a": "any(b)"}}
    )
    headers = {"Idempotency-Key": "persons"}
    first = api.post("/v1/releases", asked, headers=headers)
    assert first.status_code == 201
    assert (
        api.post("/v1/releases", json.loads(json.dumps(asked)), headers=headers).content
        == first.content
    )
    other = body(
        {"kind": "count", "where": "visits >= 2", "persons": {"visits": "count(where=b == 1)"}}
    )
    assert api.post("/v1/releases", other, headers=headers).status_code == 409


def test_features_of_one_name_and_two_texts_are_two_columns(api: Api) -> None:
    """What is kept of one question's view in memory is not taken for another's."""
    values = []
    for text in ("count()", "count(where=b == 1)"):
        asked = body({"kind": "mean", "column": "v", "persons": {"v": text}}, epsilon=50.0)
        values.append(api.post("/v1/releases", asked).json()["result"]["value"])
    assert values == [pytest.approx(799 / 400, abs=0.05), pytest.approx(399 / 400, abs=0.05)]
