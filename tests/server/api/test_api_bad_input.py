# SPDX-License-Identifier: Apache-2.0
"""Bad input: a status, a code and a sentence; nothing charged, nothing read, nothing echoed."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from reticent_server.api.problems import Problem
from reticent_server.pipeline.services import Services
from support.installations.small import Api, Installation, request_body, without_reader

FIT = {"kind": "linear_regression"}
NESTED = "(" * 5000 + "y" + ")" * 5000
MARK = "zq7x"
JSON = {"Content-Type": "application/json"}

BAD_QUERIES: list[tuple[str, Any, str]] = [
    ("no query", None, "invalid_query"),
    ("a list", [], "invalid_query"),
    ("no kind", {"column": "y"}, "invalid_query"),
    ("an unknown kind", {"kind": MARK}, "invalid_query"),
    ("the curator's kind", {"kind": "profile"}, "invalid_query"),
    ("an unknown field's value", {"kind": "count", "wher": MARK}, "invalid_query"),
    ("a field that is no name", {"kind": "count", f"{MARK}!": 1}, "invalid_query"),
    ("a field of a long name", {"kind": "count", MARK * 11: 1}, "invalid_query"),
    ("an unknown column", {"kind": "mean", "column": MARK}, "invalid_query"),
    ("a categorical mean", {"kind": "mean", "column": "g"}, "invalid_query"),
    ("a column that is a number", {"kind": "mean", "column": 3}, "invalid_query"),
    ("half a surrogate", {"kind": "mean", "column": "\ud800"}, "invalid_query"),
    ("an unknown mechanism", FIT | {"formula": "y ~ x", "mechanism": MARK}, "invalid_query"),
    ("a negative tuning", FIT | {"formula": "y ~ x", "tuning": -1}, "invalid_query"),
    ("a tuning near zero", FIT | {"formula": "y ~ x", "tuning": 1e-300}, "invalid_query"),
    (
        "a level that rounds to 1",
        FIT | {"formula": "y ~ x", "confidence_level": 1 - 1e-16},
        "invalid_query",
    ),
    ("infinite tuning", FIT | {"formula": "y ~ x", "tuning": float("inf")}, "invalid_query"),
    ("a text as tuning", FIT | {"formula": "y ~ x", "tuning": "1"}, "invalid_query"),
    ("level 1", FIT | {"formula": "y ~ x", "confidence_level": 1}, "invalid_query"),
    ("no formula", FIT, "invalid_query"),
    ("an empty formula", FIT | {"formula": ""}, "invalid_query"),
    ("no response", FIT | {"formula": "x"}, "invalid_formula"),
    ("a column of nobody's", FIT | {"formula": f"y ~ {MARK}"}, "invalid_formula"),
    ("undefined on the bounds", FIT | {"formula": "y ~ log(x)"}, "invalid_formula"),
    ("undefined at a bound", FIT | {"formula": "y ~ log(k)"}, "invalid_formula"),
    (
        "too many columns",
        FIT
        | {"formula": "y ~ " + "*".join(f"C(k):I(x**{i + 2})" for i in range(5)) + "+ C(k)*g*b"},
        "invalid_formula",
    ),
    (
        "code",
        FIT | {"formula": f"__import__('os').system('touch {MARK}') ~ y"},
        "invalid_formula",
    ),
    ("attributes", FIT | {"formula": "y ~ x.__class__"}, "invalid_formula"),
    ("a function of nobody's", FIT | {"formula": f"y ~ {MARK}(x)"}, "invalid_formula"),
    ("5,000 brackets", FIT | {"formula": f"y ~ {NESTED}"}, "invalid_formula"),
    ("a bad predicate", {"kind": "count", "where": f"{MARK} > 1"}, "invalid_formula"),
    ("a predicate with code", {"kind": "count", "where": "exit()"}, "invalid_formula"),
]

BAD_PRIVACY: list[tuple[str, str]] = [
    ("NaN", '{"epsilon": NaN}'),
    ("infinity", '{"epsilon": Infinity}'),
    ("an overflow", '{"epsilon": 1e999}'),
    ("a huge integer", '{"epsilon": 1' + "0" * 400 + "}"),
    ("negative", '{"epsilon": -1}'),
    ("minus infinity", '{"epsilon": -Infinity}'),
    ("zero", '{"epsilon": 0}'),
    ("too small to mean anything", '{"epsilon": 5e-324}'),
    ("too large to mean anything", '{"epsilon": 1e6}'),
    ("a string", '{"epsilon": "0.1"}'),
    ("a boolean", '{"epsilon": true}'),
    ("a list", '{"epsilon": [1]}'),
    ("nothing", "{}"),
    ("null", '{"epsilon": null}'),
    ("another field", '{"epsilon": 1, "rho": 1}'),
    ("delta NaN", '{"epsilon": 1, "delta": NaN}'),
    ("delta zero", '{"epsilon": 1, "delta": 0}'),
    ("delta one", '{"epsilon": 1, "delta": 1}'),
    ("delta a string", '{"epsilon": 1, "delta": "1e-6"}'),
    ("delta a boolean", '{"epsilon": 1, "delta": false}'),
]

BAD_BODIES: list[tuple[str, bytes]] = [
    ("nothing", b""),
    ("no JSON", b"{"),
    ("a number", b"1"),
    ("null", b"null"),
    ("a list", b"[]"),
    ("not UTF-8", b'{"dataset": "\xff"}'),
    ("UTF-16", '{"dataset": "people"}'.encode("utf-16")),
    ("brackets", b"[" * 60_000),
    ("an integer of 5,000 digits", b'{"dataset": ' + b"1" * 5000 + b"}"),
    (
        "a key twice",
        (
            b'{"dataset": "people", "query": {"kind": "count"}, '
            b'"privacy": {"epsilon": 1, "epsilon": 1}}'
        ),
    ),
    ("a data set that is a number", b'{"dataset": 1, "query": {"kind": "count"}, "privacy": {}}'),
    (
        "another field",
        b'{"dataset": "people", "query": {"kind": "count"}, "privacy": {"epsilon": 1}, "a": 1}',
    ),
]


@pytest.fixture
def api(services: Services, installation: Installation) -> Iterator[Api]:
    """ana's requests to a server that cannot read a row; afterwards nothing has been charged."""
    before = services.ledger.all_balances()
    yield Api(without_reader(services), installation.keys["ana"])
    assert services.ledger.all_balances() == before
    assert services.ledger.waiting() == 0


def refused(api: Api, content: bytes, status: int, code: str, **headers: str) -> None:
    """Both routes refuse in the same way, in constant words."""
    headers = JSON | headers
    for path in ("/v1/plans", "/v1/releases"):
        reply = api.send("POST", path, content=content, headers=headers)
        assert reply.status_code == status, reply.text
        assert reply.headers["content-type"] == "application/problem+json"
        problem = Problem.model_validate(reply.json())
        assert (problem.status, problem.code) == (status, code)
        assert problem.detail.endswith(".")
        assert MARK not in reply.text
        assert len(reply.text) < 600


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("query", "code"), [q[1:] for q in BAD_QUERIES], ids=[q[0] for q in BAD_QUERIES]
)
def test_bad_queries(api: Api, query: Any, code: str) -> None:
    body = request_body() | {"query": query}
    if query is None:
        del body["query"]
    refused(api, json.dumps(body).encode(), 422, code)


@pytest.mark.sample(4)
@pytest.mark.parametrize("privacy", [p[1] for p in BAD_PRIVACY], ids=[p[0] for p in BAD_PRIVACY])
def test_bad_privacy(api: Api, privacy: str) -> None:
    content = '{"dataset": "people", "query": {"kind": "count"}, "privacy": ' + privacy + "}"
    refused(api, content.encode(), 422, "invalid_privacy")


@pytest.mark.sample(4)
@pytest.mark.parametrize("content", [b[1] for b in BAD_BODIES], ids=[b[0] for b in BAD_BODIES])
def test_bad_bodies(api: Api, content: bytes) -> None:
    refused(api, content, 422, "invalid_request")


def test_another_content_type(api: Api) -> None:
    content = json.dumps(request_body()).encode()
    refused(api, content, 422, "invalid_request", **{"Content-Type": "text/plain"})


def test_a_body_that_is_too_large(api: Api) -> None:
    refused(api, b" " * (api.services.settings.max_body_bytes + 1), 413, "too_large")


@pytest.mark.parametrize(
    "key",
    ["", "a b", "x" * 256, "tab\tbed", b"caf\xe9"],
    ids=["empty", "blank", "long", "tab", "Latin"],
)
def test_bad_idempotency_keys(api: Api, key: Any) -> None:
    reply = api.post("/v1/releases", request_body(), headers=[("Idempotency-Key", key)])
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_request")


def test_an_idempotency_key_sent_twice(api: Api) -> None:
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "a")]
    reply = api.post("/v1/releases", request_body(), headers=headers)
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_request")


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x", "offset=-1", "offset=1e3"])
def test_bad_pages(api: Api, query: str) -> None:
    reply = api.get(f"/v1/releases?{query}")
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_request")
    assert query.split("=", maxsplit=1)[0] in reply.json()["detail"]


def test_absent_and_forbidden_are_the_same_reply(api: Api) -> None:
    def replies(name: str) -> list[tuple[int, bytes, Any]]:
        body = request_body() | {"dataset": name}
        found = [
            api.get(f"/v1/datasets/{name}"),
            api.post("/v1/plans", body),
            api.post("/v1/releases", body),
        ]
        return [(r.status_code, r.content, sorted(r.headers.items())) for r in found]

    forbidden, absent = replies("secret"), replies("absent")
    assert forbidden == absent
    assert {status for status, _, _ in absent} == {404}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ["\x00", "a\ud800", "../people", "x" * 129, "people\n", "PEOPLE"])
def test_hostile_names(api: Api, name: str) -> None:
    content = json.dumps(request_body() | {"dataset": name}).encode()
    reply = api.send("POST", "/v1/plans", content=content, headers=JSON)
    assert reply.status_code in (404, 422)


def test_a_word_that_is_no_choice_is_answered_with_the_choices(api: Api) -> None:
    query = {"kind": "glm", "formula": "b ~ x", "family": MARK}
    reply = api.post("/v1/plans", request_body() | {"query": query})
    assert reply.status_code == 422
    told = "query.family must be one of 'binomial', 'poisson'"
    assert reply.json()["detail"].startswith(told)
    assert MARK not in reply.text


def test_policy_and_budget_refusals(api: Api, installation: Installation) -> None:
    reply = api.post("/v1/releases", request_body(epsilon=99, delta=0.009))
    assert (reply.status_code, reply.json()["code"]) == (403, "budget_exhausted")
    assert set(reply.json()["remaining"]) == {"epsilon", "rho", "rho_delta"}
    facts = api.services.catalog.facts("people")
    api.services.catalog.set_policy("people", replace(facts.policy, max_epsilon=0.1), by="t")
    reply = api.post("/v1/plans", request_body(epsilon=0.2))
    assert (reply.status_code, reply.json()["code"]) == (403, "policy")


def test_paths_and_methods_of_nobody(api: Api) -> None:
    for method, path, status, code in [
        ("GET", f"/{MARK}", 404, "not_found"),
        ("GET", f"/v1/releases/{MARK}", 404, "not_found"),
        ("GET", "/v1/releases/%00", 404, "not_found"),
        ("GET", "/docs", 404, "not_found"),
        ("DELETE", "/v1/budget", 405, "method_not_allowed"),
        ("POST", "/v1/datasets/people", 405, "method_not_allowed"),
    ]:
        reply = api.send(method, path)
        assert (reply.status_code, reply.json()["code"]) == (status, code), path
        assert reply.headers["content-type"] == "application/problem+json"
        assert MARK not in reply.text
