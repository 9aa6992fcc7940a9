# SPDX-License-Identifier: Apache-2.0
"""Every failure, the server's or the wire's, becomes one of the package's errors."""

import copy
import inspect
import pickle
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from pickle import PicklingError
from typing import Any

import httpx
import pytest

import reticent
from reticent import _errors
from support.client.replying_server import PLAN, Server, problem, release

Ask = Callable[[reticent.Dataset], Any]
CODES = {
    "unauthorized": (401, reticent.Unauthorized),
    "not_found": (404, reticent.NotFound),
    "budget_exhausted": (403, reticent.BudgetExhausted),
    "policy": (403, reticent.PolicyRefused),
    "idempotency_conflict": (409, reticent.IdempotencyConflict),
    "conflict": (409, reticent.Conflict),
    "invalid_request": (422, reticent.InvalidRequest),
    "invalid_query": (422, reticent.InvalidQuery),
    "invalid_formula": (422, reticent.InvalidFormula),
    "invalid_privacy": (422, reticent.InvalidPrivacy),
    "rate_limited": (429, reticent.RateLimited),
    "unavailable": (503, reticent.ServerUnavailable),
    "internal": (500, reticent.ServerError),
    "a_code_of_a_later_version": (422, reticent.InvalidRequest),
    "method_not_allowed": (405, reticent.InvalidRequest),
}
STATUSES = {
    302: reticent.UnexpectedReply,
    400: reticent.InvalidRequest,
    401: reticent.Unauthorized,
    403: reticent.PolicyRefused,
    404: reticent.NotFound,
    409: reticent.Conflict,
    413: reticent.InvalidRequest,
    418: reticent.UnexpectedReply,
    429: reticent.RateLimited,
    500: reticent.ServerError,
    502: reticent.ServerUnavailable,
    503: reticent.ServerUnavailable,
    504: reticent.ServerUnavailable,
}


def leaves(kind: type[BaseException]) -> set[type[BaseException]]:
    return {kind}.union(*map(leaves, kind.__subclasses__()))


HTTPX_ERRORS = sorted(
    leaves(httpx.HTTPError)
    | leaves(httpx.StreamError)
    | leaves(httpx.InvalidURL)
    | leaves(httpx.CookieConflict),
    key=lambda kind: kind.__name__,
)


def instance(kind: type[BaseException]) -> Exception:
    request = httpx.Request("GET", "http://server.test")
    needed = inspect.signature(kind).parameters
    known = {"message": "words", "request": request, "response": httpx.Response(500)}
    found = kind(**{name: known[name] for name in needed if name in known})
    assert isinstance(found, Exception)
    return found


@pytest.mark.parametrize("code", CODES)
def test_every_code(code: str, server: Server) -> None:
    status, kind = CODES[code]
    server.answer = lambda _: problem(status, code)
    with pytest.raises(kind, match=f"A sentence about {code}.") as caught:
        server.client().budget()
    assert type(caught.value) is kind
    assert (caught.value.status, caught.value.code) == (status, code)


@pytest.mark.parametrize("body", [b"<html>proxy</html>", b"[]", b'"x"', b"", b"\xff"])
@pytest.mark.parametrize("status", STATUSES)
def test_every_status_without_a_problem(status: int, body: bytes, server: Server) -> None:
    server.answer = lambda _: httpx.Response(status, content=body)
    with pytest.raises(STATUSES[status], match=f"replied {status}") as caught:
        server.client().budget()
    assert type(caught.value) is STATUSES[status]


@pytest.mark.parametrize("kind", HTTPX_ERRORS)
def test_every_error_of_the_wire(kind: type[BaseException], server: Server) -> None:
    error = instance(kind)
    server.replies = [error] * 9
    with pytest.raises(reticent.TransportError, match=kind.__name__):
        server.client(retries=1).budget()


def test_what_is_left_comes_with_an_exhausted_budget(server: Server) -> None:
    left = {"epsilon": 0.25, "delta": 1e-7}
    server.answer = lambda _: problem(403, "budget_exhausted", remaining=left)
    with pytest.raises(reticent.BudgetExhausted) as caught:
        server.client().budget()
    assert caught.value.remaining == left
    assert str(caught.value).endswith("Left: ε = 0.25, δ = 1e-07.")


@pytest.mark.parametrize(
    "content",
    [b"", b"not json", b"[]", b"{}", b'{"accounts": [{"dataset": "x"}]}', b'{"accounts": 5}'],
)
def test_a_success_that_is_not_ours(content: bytes, server: Server) -> None:
    server.answer = lambda _: httpx.Response(200, content=content)
    for call in (
        server.client().budget,
        server.client().datasets,
        server.client().releases,
        lambda: server.client().dataset("x"),
        lambda: server.client().release("x"),
    ):
        with pytest.raises(reticent.UnexpectedReply):
            call()


def test_a_regression_whose_arrays_do_not_fit(server: Server) -> None:
    document = release()
    for name in ("coefficients", "p_values", "covariance", "confidence_intervals", "estimable"):
        broken = document | {"result": document["result"] | {name: [1.0]}}
        server.always(200, broken)
        with pytest.raises(reticent.UnexpectedReply):
            server.client().release("rel_1")


def test_an_answer_to_another_question(server: Server) -> None:
    ds = server.dataset()
    server.always(201, release("count"))
    with pytest.raises(reticent.UnexpectedReply, match="another question"):
        ds.linear_regression("y ~ x1", epsilon=1.0)


ASKED = {"column": "price", "where": "grade >= 7"}


@pytest.mark.parametrize(
    "changes",
    [
        {"dataset": "cars"},
        {"query": {"kind": "count"} | ASKED},
        {"query": {"kind": "mean"} | ASKED | {"column": "grade"}},
        {"query": {"kind": "mean"} | ASKED | {"where": "grade >= 8"}},
    ],
)
def test_a_reply_to_another_question_is_refused(server: Server, changes: dict[str, Any]) -> None:
    """As of two processes that read from one connection: asked, planned and handed in."""
    ds, own = server.dataset(), {"query": {"kind": "mean", "weights": "grade"} | ASKED}
    server.echoes = False
    server.always(201, release("mean", **own))
    assert ds.mean("price", where="grade >= 7", epsilon=1.0).value == 523.5
    server.always(201, release("mean", **(own | changes)))
    for ask in (ds.mean, partial(ds.submit, "mean")):
        with pytest.raises(reticent.UnexpectedReply, match="no second charge") as refused:
            ask("price", where="grade >= 7", epsilon=1.0, idempotency_key="k1")
        assert refused.value.idempotency_key == "k1"
    server.always(200, PLAN | own | changes)
    with pytest.raises(reticent.UnexpectedReply, match="another question"):
        ds.plan("mean", "price", where="grade >= 7", epsilon=1.0)


def test_a_reply_under_another_idempotency_key_is_refused(server: Server) -> None:
    ds = server.dataset()
    for sent, given in (("k1", "k1"), ("k1", "k2")):
        headers = {"Idempotency-Key": given}
        server.echoes = False
        content = release("mean", query={"kind": "mean", "column": "price"})
        server.answer = lambda _, h=headers, c=content: httpx.Response(201, json=c, headers=h)
        if sent == given:
            assert ds.mean("price", epsilon=1.0, idempotency_key=sent).id == "rel_1"
            continue
        with pytest.raises(reticent.UnexpectedReply, match="another question"):
            ds.mean("price", epsilon=1.0, idempotency_key=sent)


def test_what_holds_a_key_is_not_stored(server: Server) -> None:
    """A release is: it holds no key."""
    ds = server.dataset()
    for each in (ds, server.client()):
        with pytest.raises(PicklingError, match=r"reticent\.Client\(url\)\.dataset\(name\)"):
            pickle.dumps(each)
        with pytest.raises(PicklingError, match="key"):
            copy.deepcopy(each)
    server.always(201, release("mean"))
    stored = pickle.dumps(ds.mean("price", epsilon=1.0))
    assert b"secret" not in stored
    assert pickle.loads(stored).value == 523.5


@pytest.mark.parametrize("key", ["", "  ", "rk_ü", "rk\nX-Header: 1", "rk\0"])
def test_an_unusable_key_is_refused_without_showing_it(key: str, server: Server) -> None:
    with pytest.raises(reticent.Unauthorized) as caught:
        server.client(key=key)
    assert "rk" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_the_key_is_stripped_and_never_shown(server: Server) -> None:
    server.always(200, {"accounts": []})
    client = server.client(key="rk_1_secret\n")
    client.budget()
    assert server.requests[0].headers["Authorization"] == "Bearer rk_1_secret"
    assert "secret" not in repr(client) + repr(server.dataset())


@pytest.mark.parametrize("url", ["server.test", "ftp://server.test", "http://[::1", ""])
def test_an_unusable_address(url: str) -> None:
    with pytest.raises(reticent.TransportError, match="address"):
        reticent.Client(url, key="rk")


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (httpx.ConnectError, "Is the address right"),
        (httpx.ConnectTimeout, "Is the address right"),
        (httpx.ReadTimeout, "It may still be at work"),
        (httpx.RemoteProtocolError, "The connection broke"),
    ],
)
def test_no_reply_names_the_address_without_a_password(
    error: type[Exception], advice: str, server: Server
) -> None:
    server.replies = [error("its own text")] * 9
    client = reticent.Client(
        "http://ada:secret@server.test/base", "rk", transport=httpx.MockTransport(server), retries=0
    )
    with pytest.raises(reticent.TransportError, match=advice) as caught:
        client.budget()
    assert "No reply from http://server.test/base (" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert ("its own text" in str(caught.value)) == error.__name__.startswith("Connect")
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(("status", "asks"), [(404, True), (301, True), (503, False), (401, False)])
def test_a_path_that_is_not_ours(status: int, asks: bool, server: Server) -> None:
    server.answer = lambda _: httpx.Response(status, content=b"<html>")
    with pytest.raises(reticent.ReticentError) as caught:
        server.client().budget()
    assert ("without a path?" in str(caught.value)) == asks


ABSENT = [
    (lambda ds: ds.mean("prize", epsilon=1), "prize; did you mean price?"),
    (lambda ds: ds.crosstab(["zone", "gold"], epsilon=1),
        "gold; the columns are price, grade, zone, new."),
    (lambda ds: ds.count('zone == "prize" and grad >= 2', epsilon=1), "grad; did you mean grade?"),
    (lambda ds: ds.plan("linear_regression", "price ~ log(grde)", epsilon=1), "grde; did you mean"),
    (lambda ds: ds.submit("mean", "nwe", epsilon=1), "nwe; did you mean new?"),
    (lambda ds: ds.glm("new ~ bs(grade, degree=2) + proce", "binomial", epsilon=1), "proce; did"),
    (lambda ds: ds.plan("linear_regression", "price ~ C(zone, Sum) + lump(zone, n=2) + grad",
            epsilon=1), "grad; did"),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "advice"), ABSENT, ids=range(len(ABSENT)))
@pytest.mark.parametrize("code", ["invalid_query", "invalid_formula"])
def test_a_misspelt_column_is_named(code: str, ask: Ask, advice: str, server: Server) -> None:
    ds = server.dataset()
    server.answer = lambda _: problem(422, code)
    with pytest.raises(CODES[code][1]) as caught:
        ask(ds)
    assert f"A sentence about {code}. There is no column {advice}" in str(caught.value)
    assert (caught.value.status, caught.value.code) == (422, code)


@pytest.mark.parametrize("code", ["invalid_query", "invalid_privacy", "policy"])
def test_nothing_is_said_of_columns_where_they_are_not_at_fault(code: str, server: Server) -> None:
    ds = server.dataset()
    server.answer = lambda _: problem(CODES[code][0], code)
    with pytest.raises(CODES[code][1]) as caught:
        ds.linear_regression("price ~ C(zone) + poly(grade, 2)", "not new == 1", epsilon=1)
    assert "There is no column" not in str(caught.value)


def test_a_misspelt_kind_is_answered_with_the_nearest(server: Server) -> None:
    ds = server.dataset()
    with pytest.raises(reticent.InvalidQuery, match=r"Did you mean linear_regression\?$"):
        ds.plan("linear_regresion", "price ~ grade", epsilon=1)
    with pytest.raises(reticent.InvalidQuery, match=r"is one of count, .*[a-z]\.$"):
        ds.plan("zzz", epsilon=1)


@pytest.mark.parametrize("content", [b"{}", b"words", b"\xff", b"[1]"])
def test_a_file_that_holds_no_release(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "kept.json").write_bytes(content)
    with pytest.raises(reticent.UnexpectedReply, match=r"kept.json holds no release"):
        reticent.load(tmp_path / "kept.json")


def test_the_tree_is_the_documented_one() -> None:
    kinds = {
        name: kind
        for name, kind in vars(_errors).items()
        if inspect.isclass(kind) and issubclass(kind, reticent.ReticentError)
    }
    drawn = re.findall(r"^ *((?:[│ ] {3})*)[├└]── (\w+)", str(_errors.__doc__), re.MULTILINE)
    parents = {0: reticent.ReticentError}
    for indent, name in drawn:
        depth = len(indent) // 4
        assert kinds[name].__bases__[0] is parents[depth]
        parents[depth + 1] = kinds[name]
    assert {name for _, name in drawn} | {"ReticentError"} == set(kinds)
    assert set(kinds) <= set(reticent.__all__)
