# SPDX-License-Identifier: Apache-2.0
"""The published JSON Schema of a release, against what the server replies and stores."""

from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import reticent
from reticent.kinds import KINDS
from reticent_server.api.replies import ReleaseReply
from reticent_server.domain.plan import Release
from reticent_server.pipeline.services import Services
from support.client.replying_server import release
from support.documents.code_blocks import ROOT
from support.installations.small import Api, Installation, request_body
from support.kinds.examples import FIELDS

SCHEMA = reticent.release_schema()
VALIDATOR = Draft202012Validator(SCHEMA)


@pytest.fixture
def api(services: Services, installation: Installation) -> Api:
    return Api(services, installation.keys["ana"])


def described() -> set[str]:
    """The kinds whose results the schema describes."""
    queries = (branch["if"]["properties"].get("query") for branch in SCHEMA["allOf"])
    return {kind for query in queries if query for kind in query["properties"]["kind"]["enum"]}


@pytest.mark.slow
def test_its_members_are_those_of_the_interface() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    reply = ReleaseReply.model_json_schema()
    assert set(SCHEMA["properties"]) == set(reply["properties"])
    assert set(SCHEMA["required"]) == set(reply["required"])
    assert SCHEMA["properties"]["status"]["enum"] == reply["properties"]["status"]["enum"]
    for ours, theirs in (("amount", "ChargeReply"), ("guarantee", "GuaranteeReply")):
        assert set(SCHEMA["$defs"][ours]["properties"]) == set(reply["$defs"][theirs]["properties"])


def test_it_describes_every_kind() -> None:
    """tests/walk holds a release of every kind to it."""
    assert set(FIELDS) <= described() == set(KINDS)


def test_a_failed_release_is_valid(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        type(api.services.engine), "execute", lambda *_: Release(status="failed", result=None)
    )
    VALIDATOR.validate(api.post("/v1/releases", request_body()).json())


def test_the_schema_is_not_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import release_schema

    advice = "run: make generated"
    assert release_schema.TARGET.read_text("utf-8") == release_schema.source(), advice


@pytest.mark.slow
def test_what_is_not_estimable_is_null_in_a_test_and_in_a_table_of_terms(api: Api) -> None:
    """A mask that leaves nobody: the statistic is there, and is null."""
    fields = {"kind": "hypothesis_test", "formula": "y ~ x", "where": "y > 1e9"}
    for more in ({"hypothesis": ["x = 0"]}, {}):
        reply = api.post("/v1/releases", request_body(fields | more, epsilon=5.0))
        document = reply.json()
        VALIDATOR.validate(document)
        (row,) = document["result"].get("table") or [document["result"]]
        assert (row["statistic"], row["p_value"], row["estimable"]) == (None, None, False)
        del row["statistic"]
        assert not VALIDATOR.is_valid(document)


def whole() -> dict[str, Any]:
    """A release of a regression with all that a server sends."""
    document = release()
    size = len(document["result"]["terms"])
    unit = [float(k == 0) for k in range(size)]
    document["result"] |= {
        "directions": [{"vector": unit, "resolved": True}] * size,
        "weighting": {"matrix": [unit], "radius_squared": 2.0},
        "shares": {"steps": 1.0},
    }
    return document


CHANGES: list[Callable[[dict[str, Any]], Any]] = [
    lambda d: d.pop("guarantee"),
    lambda d: d.update(surprise=1),
    lambda d: d.update(status="maybe"),
    lambda d: d.update(result=None),
    lambda d: d.update(id="1"),
    lambda d: d["charged"].update(epsilon=-1.0),
    lambda d: d["guarantee"].update(tier="certain"),
    lambda d: d["result"].pop("covariance"),
    lambda d: d["result"]["estimable"].append("yes"),
    lambda d: d["result"]["confidence_intervals"][0].append(1.0),
    lambda d: d["result"].update(p_values=[1.5]),
    lambda d: d["result"].update(n=0),
    lambda d: d["result"].update(family=None),
    lambda d: d["result"]["directions"][0].pop("resolved"),
    lambda d: d["result"]["weighting"].update(radius_squared=0.0),
]


def test_what_is_no_release_is_not_valid() -> None:
    VALIDATOR.validate(whole())
    for change in CHANGES:
        document = whole()
        change(document)
        assert not VALIDATOR.is_valid(document), document


def test_a_kind_of_a_later_version_is_valid() -> None:
    VALIDATOR.validate(release() | {"query": {"kind": "new"}, "result": {"anything": [1]}})
