# SPDX-License-Identifier: Apache-2.0
"""Callers of the last version go on: the HTTP interface, a release's schema and the client break
nothing.
"""

import copy
import importlib
import json
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from support.documents.code_blocks import ROOT

Json = dict[str, Any]


@pytest.fixture(scope="module")
def contract() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "tools"))
        return importlib.import_module("contract")


@pytest.fixture(scope="module")
def rules(contract: ModuleType) -> ModuleType:
    return sys.modules["compatibility"]


@pytest.fixture(scope="module")
def stored(contract: ModuleType) -> dict[str, Json]:
    found: dict[str, Json] = contract.stored()
    assert set(found) == {"openapi.json", "release.schema.json", "client.json"}
    return found


@pytest.mark.slow
def test_callers_of_the_last_version_go_on(contract: ModuleType, stored: dict[str, Json]) -> None:
    """`make contract` stores a new version's; a version that may break callers names what in
    CHANGELOG.
    """
    present = contract.present()
    versions = (d["openapi.json"]["info"]["version"] for d in (stored, present))
    assert contract.may_break(*versions) or contract.breaks(stored, present) == []


@pytest.mark.parametrize(
    ("old", "new", "may"),
    [
        ("0.1.0", "0.1.7", False),
        ("0.1.0", "0.2.0", True),
        ("0.9.0", "0.10.0", True),
        ("0.9.0", "1.0.0", True),
        ("1.2.0", "1.3.0", False),
        ("1.2.0", "2.0.0", True),
        ("0.2.0", "0.1.0", False),
    ],
)
def test_which_versions_may_break_callers(
    contract: ModuleType, old: str, new: str, may: bool
) -> None:
    assert contract.may_break(old, new) is may


def schema(document: Json, name: str) -> Json:
    found: Json = document["components"]["schemas"][name]
    return found


def renamed(document: Json, old: str, new: str) -> Json:
    found: Json = json.loads(json.dumps(document).replace(old, new))
    return found


def reply(document: Json, name: str) -> Json:
    found: Json = schema(document, name)["properties"]
    return found


HTTP_BREAKS: dict[str, tuple[Callable[[Json], object], str]] = {
    "a path": (lambda d: d["paths"].pop("/v1/plans"), "POST /v1/plans is gone"),
    "a method": (
        lambda d: d["paths"]["/v1/releases/{release_id}"].pop("delete"),
        "DELETE /v1/releases/{release_id} is gone",
    ),
    "a field of a reply": (
        lambda d: reply(d, "BudgetReply").pop("accounts"),
        "GET /v1/budget: 200: `accounts` is gone",
    ),
    "a field of a reply that may be absent": (
        lambda d: schema(d, "ReleaseReply")["required"].remove("result"),
        "GET /v1/releases/{release_id}: 200: `result` may now be absent",
    ),
    "a status of a release": (
        lambda d: reply(d, "ReleaseReply")["status"]["enum"].append("lost"),
        'POST /v1/releases: 201: `status` may now be "lost"',
    ),
    "a null in a reply": (
        lambda d: reply(d, "DatasetReply").update(n={"type": ["integer", "null"]}),
        "GET /v1/datasets/{name}: 200: `n` may now be every null",
    ),
    "a kind": (
        lambda d: reply(d, "RequestBody")["query"]["oneOf"].remove(
            {"$ref": "#/components/schemas/MeanBody"}
        ),
        "POST /v1/releases: request: `query<mean>` is no longer accepted",
    ),
    "a field of a request": (
        lambda d: reply(d, "GlmBody").pop("where"),
        "POST /v1/releases: request: `query<glm>.where` is no longer accepted",
    ),
    "a field of a request that is required now": (
        lambda d: schema(d, "MeanBody")["required"].append("where"),
        "POST /v1/releases: request: `query<mean>.where` is now required",
    ),
    "a new field of a request that is required": (
        lambda d: (
            reply(d, "MeanBody").update(by={"type": "string"}),
            schema(d, "MeanBody")["required"].append("by"),
        ),
        "POST /v1/releases: request: `query<mean>.by` is new and required",
    ),
    "a value of a request": (
        lambda d: reply(d, "GlmBody")["family"]["enum"].remove("poisson"),
        'POST /v1/releases: request: `query<glm>.family` no longer accepts "poisson"',
    ),
    "a narrower limit": (
        lambda d: reply(d, "RequestBody")["dataset"].update(maxLength=64),
        "POST /v1/releases: request: `dataset` has a narrower maxLength",
    ),
    "a type of a request": (
        lambda d: reply(d, "CountBody").update(where={"type": "string", "minLength": 1}),
        "POST /v1/releases: request: `query<count>.where` no longer accepts every null",
    ),
    "a status of a reply": (
        lambda d: d["paths"]["/v1/releases"]["post"]["responses"].pop("202"),
        "POST /v1/releases: 202 is gone",
    ),
    "a parameter": (
        lambda d: d["paths"]["/v1/releases"]["get"]["parameters"].pop(),
        "GET /v1/releases: the query parameter `offset` is gone",
    ),
    "a parameter that is required now": (
        lambda d: d["paths"]["/v1/releases"]["get"]["parameters"][0].update(required=True),
        "GET /v1/releases: the query parameter `limit` is now required",
    ),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", HTTP_BREAKS)
def test_a_breaking_change_of_http_is_named(
    rules: ModuleType, stored: dict[str, Json], name: str
) -> None:
    change, named = HTTP_BREAKS[name]
    old = stored["openapi.json"]
    new = copy.deepcopy(old)
    change(new)
    assert named in rules.http_breaks(old, new)


HTTP_ADDITIONS: dict[str, Callable[[Json], object]] = {
    "a path": lambda d: d["paths"].update({"/v1/more": d["paths"]["/v1/budget"]}),
    "a field of a reply": lambda d: (
        reply(d, "BudgetReply").update(more={"type": "string"}),
        schema(d, "BudgetReply")["required"].append("more"),
    ),
    "an optional field of a request": lambda d: reply(d, "MeanBody").update(by={"type": "string"}),
    "a value of a request": lambda d: reply(d, "GlmBody")["family"]["enum"].append("tweedie"),
    "a wider limit": lambda d: reply(d, "RequestBody")["dataset"].update(maxLength=256),
    "a kind": lambda d: (
        d["components"]["schemas"].update(
            NewBody={
                "type": "object",
                "properties": {"kind": {"type": "string", "const": "new"}},
                "required": ["kind"],
            }
        ),
        reply(d, "RequestBody")["query"]["oneOf"].append({"$ref": "#/components/schemas/NewBody"}),
    ),
    "another type of a request": lambda d: reply(d, "MeanBody").update(
        column={"anyOf": [reply(d, "MeanBody")["column"], {"const": 7}]}
    ),
    "the name of a schema": lambda d: d.update(renamed(d, "MeanBody", "AverageBody")),
}


@pytest.mark.parametrize("name", HTTP_ADDITIONS)
def test_an_addition_breaks_nothing(rules: ModuleType, stored: dict[str, Json], name: str) -> None:
    old = stored["openapi.json"]
    new = copy.deepcopy(old)
    HTTP_ADDITIONS[name](new)
    assert new != old
    assert rules.http_breaks(old, new) == []


def test_breaking_changes_of_a_release_are_named(
    rules: ModuleType, stored: dict[str, Json]
) -> None:
    old = stored["release.schema.json"]
    new = copy.deepcopy(old)
    assert rules.release_breaks(old, new) == []
    del new["properties"]["guarantee"]
    del new["$defs"]["regression"]["properties"]["coefficients"]
    new["allOf"] = [rule for rule in new["allOf"] if "depth_median" not in str(rule["if"])]
    assert rules.release_breaks(old, new) == [
        "`guarantee` is gone",
        "the result of depth_median is gone",
        "the result of glm: `coefficients` is gone",
        "the result of linear_regression: `coefficients` is gone",
    ]


def test_breaking_changes_of_the_client_are_named(
    contract: ModuleType, stored: dict[str, Json]
) -> None:
    old = stored["client.json"]
    new = copy.deepcopy(old)
    assert contract.client_breaks(old, new) == []
    del new["Dataset.mean"]
    del new["Dataset.count"]["where"]
    new["Client.budget"]["unit"] = True
    new["Client.wait"]["pause"] = False
    new["Dataset.brand_new"] = {"column": True}
    assert sorted(contract.client_breaks(old, new)) == [
        "`Client.budget`: `unit` must be given",
        "`Dataset.count`: `where` is gone",
        "`Dataset.mean` is gone",
    ]
