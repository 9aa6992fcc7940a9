# SPDX-License-Identifier: Apache-2.0
"""Releases that are answered later: polling, the bar, an interruption; against a server in a
function.
"""

import io
from typing import Any

import httpx
import pytest

import reticent
from reticent import _progress
from support.client.replying_server import DATASET, Server, problem, release


def pending(fraction: float, state: str = "running", remaining: int = 1200) -> dict[str, Any]:
    progress = {"state": state, "fraction": fraction, "remaining_ms": remaining}
    return release("count", status="pending", result=None, progress=progress)


def answers(*documents: dict[str, Any]) -> list[Any]:
    return [httpx.Response(202 if k == 0 else 200, json=d) for k, d in enumerate(documents)]


def dataset(server: Server, **options: Any) -> reticent.Dataset:
    server.always(200, DATASET)
    return server.client(**options).dataset("houses")


def test_a_bar_shows_the_planned_progress_until_the_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = Server()
    houses = dataset(server, progress=True)
    server.replies = answers(pending(0.0, "queued", 9000), pending(0.5), release("count"))
    assert houses.count(epsilon=0.1).value == 523.5
    post, first, second = server.requests[1:]
    assert (post.method, post.headers["prefer"]) == ("POST", "respond-async")
    assert post.headers["idempotency-key"]
    assert [r.url.path for r in (first, second)] == ["/base/v1/releases/rel_1"] * 2
    assert server.pauses == [0.45, 0.06]
    shown = capsys.readouterr().err
    assert "0% queued, 9 s left" in shown
    assert "50% running, 1 s left" in shown
    assert shown.endswith(" \r")


def test_without_a_bar_a_release_is_one_request() -> None:
    server = Server()
    houses = dataset(server, progress=False)
    server.replies = [httpx.Response(201, json=release("count"))]
    houses.count(epsilon=0.1)
    assert len(server.requests) == 2
    assert "prefer" not in server.requests[-1].headers


def test_a_bar_is_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stderr", Terminal())
    houses = dataset(server)
    server.replies = [httpx.Response(201, json=release("count"))]
    houses.count(epsilon=0.1)
    assert server.requests[-1].headers["prefer"] == "respond-async"


@pytest.mark.parametrize("cancelled", [True, False])
def test_an_interruption_tries_to_cancel(cancelled: bool) -> None:
    server = Server()

    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    houses = dataset(server, progress=True, sleep=interrupted, retries=0)
    done = release("count", status="cancelled", result=None)
    end = httpx.Response(200, json=done) if cancelled else problem(409, "conflict")
    server.replies = [*answers(pending(0.1)), end]
    with pytest.raises(KeyboardInterrupt):
        houses.count(epsilon=0.1)
    assert server.requests[-1].method == "DELETE"


def test_submitting_waiting_and_cancelling() -> None:
    server = Server()
    server.always(200, DATASET)
    client = server.client()
    houses = client.dataset("houses")
    server.replies = answers(pending(0.1))
    asked = houses.submit("count", epsilon=0.1, idempotency_key="mine")
    assert (asked.id, asked.status) == ("rel_1", "pending")
    assert server.requests[-1].headers["idempotency-key"] == "mine"
    server.replies = [httpx.Response(200, json=d) for d in (pending(0.9), release("count"))]
    assert client.wait(asked.id).status == "reply"
    server.replies = [httpx.Response(200, json=release("count", status="cancelled", result=None))]
    assert client.cancel(asked.id).status == "cancelled"
    server.replies = [problem(409, "conflict")]
    with pytest.raises(reticent.Conflict):
        client.cancel(asked.id)


def test_a_pending_release_without_progress_is_not_this_protocol() -> None:
    server = Server()
    houses = dataset(server, progress=True)
    server.replies = answers(release("count", status="pending", result=None))
    with pytest.raises(reticent.UnexpectedReply):
        houses.count(epsilon=0.1)


def test_the_bar_is_erased_whole() -> None:
    stream = io.StringIO()
    bar = _progress.Bar(stream)
    bar.clear()
    assert stream.getvalue() == ""
    bar.show({"state": "running", "fraction": 7.0, "remaining_ms": -5})
    bar.clear()
    line, blank = stream.getvalue().split("\r")[1:3]
    assert "100% running, 0 s" in line
    assert blank == " " * len(line)
