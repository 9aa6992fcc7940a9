# SPDX-License-Identifier: Apache-2.0
"""Requests as they are sent, retries, and that no retry is a second charge."""

import json

import httpx
import numpy as np
import pytest

import reticent
from support.client.replying_server import DATASET, Server, problem, release

REQUEST = httpx.Request("POST", "http://server.test")


def test_a_release_is_asked_for_as_the_server_reads_it(server: Server) -> None:
    ds = server.dataset()
    server.always(201, release())
    ds.linear_regression("y ~ x1", epsilon=np.float64(0.5), delta=1e-7, where="x1 > 0", tuning=2)
    sent = server.requests[-1]
    assert (sent.method, sent.url.path) == ("POST", "/base/v1/releases")
    assert sent.headers["Content-Type"] == "application/json"
    assert len(sent.headers["Idempotency-Key"]) == 32
    assert server.body() == {
        "dataset": "houses",
        "query": {
            "kind": "linear_regression",
            "formula": "y ~ x1",
            "where": "x1 > 0",
            "tuning": 2.0,
        },
        "privacy": {"epsilon": 0.5, "delta": 1e-7},
    }


def test_what_is_not_given_is_not_sent(server: Server) -> None:
    ds = server.dataset()
    server.always(201, release("count"))
    ds.count(epsilon=1)
    assert server.body()["query"] == {"kind": "count"}
    assert server.body()["privacy"] == {"epsilon": 1.0}
    server.always(201, release("mean"))
    ds.mean("price", 'zone == "a"', epsilon=1)
    assert server.body()["query"] == {"kind": "mean", "column": "price", "where": 'zone == "a"'}


@pytest.mark.parametrize(
    "failure",
    [
        httpx.ConnectError("x", request=REQUEST),
        httpx.ReadTimeout("x", request=REQUEST),
        httpx.RemoteProtocolError("x", request=REQUEST),
        problem(503, "unavailable"),
        problem(429, "rate_limited"),
        httpx.Response(502),
        httpx.Response(504),
    ],
)
def test_a_retry_carries_the_same_key(failure: httpx.Response | Exception, server: Server) -> None:
    ds = server.dataset()
    server.requests.clear()
    server.replies = [failure, failure]
    server.always(201, release("count"))
    answer = ds.count(epsilon=1.0)
    assert answer.status == "reply"
    assert len(server.requests) == 3
    assert len({r.headers["Idempotency-Key"] for r in server.requests}) == 1
    assert len({r.content for r in server.requests}) == 1
    assert server.pauses == [0.25, 0.5]


def test_two_calls_have_two_keys(server: Server) -> None:
    ds = server.dataset()
    server.always(201, release("count"))
    for _ in range(2):
        ds.count(epsilon=1.0)
    first, second = (r.headers["Idempotency-Key"] for r in server.requests[-2:])
    assert first != second


def test_a_lost_reply_can_be_fetched_without_a_second_charge(server: Server) -> None:
    ds = server.dataset()
    server.replies = [httpx.ReadTimeout("x", request=REQUEST)] * 5
    with pytest.raises(reticent.TransportError, match="may have been charged") as caught:
        ds.count(epsilon=1.0)
    key = caught.value.idempotency_key
    assert key == server.requests[-1].headers["Idempotency-Key"]
    assert key in str(caught.value)
    server.always(201, release("count"))
    ds.count(epsilon=1.0, idempotency_key=key)
    assert server.requests[-1].headers["Idempotency-Key"] == key


def test_an_unavailable_server_leaves_the_key_too(server: Server) -> None:
    ds = server.dataset()
    server.answer = lambda _: problem(503, "unavailable")
    with pytest.raises(reticent.ServerUnavailable) as caught:
        ds.count(epsilon=1.0)
    assert caught.value.idempotency_key == server.requests[-1].headers["Idempotency-Key"]
    assert len(server.pauses) == 4


def test_refusals_are_not_tried_again(server: Server) -> None:
    ds = server.dataset()
    server.requests.clear()
    server.answer = lambda _: problem(403, "budget_exhausted")
    with pytest.raises(reticent.BudgetExhausted) as caught:
        ds.count(epsilon=1.0)
    assert len(server.requests) == 1
    assert caught.value.idempotency_key is None


def test_retry_after_is_obeyed_within_reason(server: Server) -> None:
    server.replies = [
        httpx.Response(429, headers={"Retry-After": "7"}),
        httpx.Response(503, headers={"Retry-After": "86400"}),
        httpx.Response(503, headers={"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}),
    ]
    server.always(200, {"accounts": []})
    server.client().budget()
    assert server.pauses == [7.0, 30.0, 1.0]


def test_a_plan_that_has_to_wait_comes_again(server: Server) -> None:
    ds = server.dataset()
    server.requests.clear()
    server.replies = [httpx.Response(429, headers={"Retry-After": "3"})]
    server.always(422, {"code": "invalid_query", "detail": "no", "title": "t", "status": 422})
    with pytest.raises(reticent.InvalidQuery):
        ds.plan("count", epsilon=1.0)
    assert server.pauses == [3.0]
    assert [request.url.path for request in server.requests] == ["/base/v1/plans"] * 2


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "1", True, None, 1j])
def test_a_budget_that_is_no_number_is_not_sent(bad: object, server: Server) -> None:
    ds = server.dataset()
    server.requests.clear()
    with pytest.raises(reticent.InvalidPrivacy):
        ds.count(epsilon=bad)  # type: ignore[arg-type]
    with pytest.raises(reticent.InvalidQuery):
        ds.linear_regression("y ~ x", epsilon=1.0, tuning=bad or "")  # type: ignore[arg-type]
    with pytest.raises(reticent.InvalidQuery):
        ds.mean(["price"], epsilon=1.0)  # type: ignore[arg-type]
    assert not server.requests


def test_hostile_texts_reach_the_server_as_they_are(server: Server) -> None:
    ds = server.dataset()
    server.answer = lambda _: problem(422, "invalid_formula")
    for text in ("\ud800", "\0", '"' * 50):
        with pytest.raises(reticent.InvalidFormula):
            ds.linear_regression(text, epsilon=1.0)
        assert json.loads(server.requests[-1].content)["query"]["formula"] == text


def test_names_stay_one_segment_of_the_path(server: Server) -> None:
    server.always(200, DATASET)
    server.client().dataset("a/b?c")
    assert server.requests[-1].url.raw_path == b"/base/v1/datasets/a%2Fb%3Fc"


def test_an_unusable_idempotency_key_is_refused(server: Server) -> None:
    ds = server.dataset()
    for key in ("", "a\nb", "ü"):
        with pytest.raises(reticent.InvalidRequest, match="idempotency key"):
            ds.count(epsilon=1.0, idempotency_key=key)


def test_a_client_closes_its_connections(server: Server) -> None:
    with server.client() as client:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        client.budget()
