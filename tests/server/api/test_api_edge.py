# SPDX-License-Identifier: Apache-2.0
"""What the edge adds and hides: headers, log lines, exceptions."""

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from reticent_server.api.logs import configure_logging
from reticent_server.errors import CuratorError, Unavailable
from reticent_server.pipeline.services import Services
from support.installations.both_backends import installation
from support.installations.small import Api, Installation, request_body

__all__ = ["installation"]

SECRET = "the cell is 4711"


@pytest.fixture
def api(services: Services, installation: Installation) -> Api:
    return Api(services, installation.keys["ana"])


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What is logged in production's configuration."""
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    configure_logging("info")
    yield stream
    structlog.reset_defaults()


def lines(log: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.getvalue().splitlines()]


@pytest.mark.slow
@pytest.mark.sample(4)
def test_every_reply_has_the_headers(api: Api) -> None:
    for path in ("/healthz", "/v1/budget", "/nothing", "/openapi.json"):
        headers = api.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers


@pytest.mark.sample(4)
def test_a_log_line_has_public_fields_only(api: Api, log: io.StringIO) -> None:
    made = api.post("/v1/releases", request_body({"kind": "mean", "column": "y"}))
    api.get("/v1/datasets/people")
    api.send("BREW", "/v1/who?key=4711")
    assert lines(log) == [
        {
            "event": "request",
            "level": "info",
            "method": "POST",
            "route": "/v1/releases",
            "status": 201,
            "release": made.json()["id"],
        },
        {
            "event": "request",
            "level": "info",
            "method": "GET",
            "route": "/v1/datasets/{name}",
            "status": 200,
            "release": None,
        },
        {
            "event": "request",
            "level": "info",
            "method": "other",
            "route": "unknown",
            "status": 404,
            "release": None,
        },
    ]


def test_a_field_that_is_not_on_the_list_is_dropped(log: io.StringIO) -> None:
    """Even where its value has the form of a public one."""
    structlog.get_logger().error("computation_failed", cell="a", rows=7, release_id="rel_x")
    assert lines(log) == [{"event": "computation_failed", "level": "error", "release_id": "rel_x"}]


@pytest.mark.parametrize(
    "error", [RuntimeError(SECRET), CuratorError(SECRET)], ids=["any", "curator's"]
)
def test_an_unexpected_exception_says_nothing(
    api: Api, log: io.StringIO, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def broken(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(type(api.services.ledger), "balances", broken)
    reply = api.get("/v1/budget")
    assert (reply.status_code, reply.json()["code"]) == (500, "internal")
    assert SECRET not in reply.text + log.getvalue()
    assert [line["event"] for line in lines(log)] == ["unexpected_error", "request"]


def test_a_database_that_is_away_is_503(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any) -> Any:
        raise Unavailable("The database did not answer; nothing is lost, try again.")

    monkeypatch.setattr(type(api.services.ledger), "reserve", lambda *_, **__: away())
    reply = api.post("/v1/releases", request_body())
    assert (reply.status_code, reply.json()["code"]) == (503, "unavailable")


@pytest.mark.sample(4)
def test_an_exception_in_a_computation_is_a_failed_release(
    api: Api, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Charged, stored, and with nothing about its cause."""

    def broken(*_: Any) -> Any:
        raise ZeroDivisionError(SECRET)

    monkeypatch.setattr("reticent_server.engine.workers.Workers.totals", broken)
    reply = api.post("/v1/releases", request_body({"kind": "mean", "column": "y"}))
    assert (reply.status_code, reply.json()["status"], reply.json()["result"]) == (
        201,
        "failed",
        None,
    )
    assert SECRET not in reply.text + log.getvalue()
    assert "ZeroDivision" not in log.getvalue()
    assert api.get(reply.headers["location"]).content == reply.content
