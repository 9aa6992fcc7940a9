# SPDX-License-Identifier: Apache-2.0
"""Failures that other servers of private answers have had, as requests to this one."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from structlog.testing import capture_logs

from reticent_server.domain.query import Privacy
from reticent_server.domain.reservation import Reservation
from reticent_server.engine.local import LocalEngine
from reticent_server.errors import ReticentError, Unavailable
from reticent_server.kinds.mean.kind import Mean
from reticent_server.ledger.service import Ledger
from reticent_server.mechanisms import registry
from reticent_server.pipeline import answer, planning
from reticent_server.pipeline.services import Services
from reticent_server.vault import readers
from reticent_server.web.bodies import RequestBody
from support.databases.migrated import SetClock
from support.installations.both_backends import installation
from support.installations.small import Api, Installation, opened, request_body, without_reader
from support.kinds.examples import FIELDS

__all__ = ["installation"]

MEAN = request_body({"kind": "mean", "column": "y"}, epsilon=0.5)


@pytest.fixture
def services(installation: Installation) -> Iterator[Services]:
    with opened(installation.settings) as services:
        yield services


@pytest.fixture
def api(services: Services, installation: Installation) -> Api:
    return Api(services, installation.keys["ana"])


def spent(api: Api) -> float:
    (account,) = api.get("/v1/budget").json()["accounts"]
    return float(account["spent"]["rho"])


def broken(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


@pytest.mark.sample(4)
def test_an_answer_that_ends_in_an_exception_is_charged(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = spent(api)
    monkeypatch.setattr(registry, "release", broken(ZeroDivisionError("7")))
    failed = api.post("/v1/releases", MEAN).json()
    assert failed["status"] == "failed"
    once = spent(api)
    assert once > before
    monkeypatch.undo()
    assert api.get(f"/v1/releases/{failed['id']}").json() == failed
    assert api.post("/v1/releases", MEAN).json()["status"] == "reply"
    assert spent(api) == pytest.approx(2 * once)


@pytest.mark.slow
@pytest.mark.sample(4)
def test_spend_survives_a_restart(api: Api, installation: Installation) -> None:
    for _ in range(3):
        assert api.post("/v1/releases", MEAN).status_code == 201
    head = api.services.ledger.head()
    with opened(installation.settings) as restarted:
        again = Api(restarted, installation.keys["ana"])
        assert spent(again) == spent(api) > 0
        assert restarted.ledger.verify(head) == []


@pytest.mark.sample(4)
def test_a_query_that_finishes_revives_nobody(
    api: Api, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it runs its analyst is revoked, the grant taken back and the cap lowered."""
    real = LocalEngine.execute

    def meanwhile(engine: LocalEngine, ready: Any, reservation: Any) -> Any:
        with opened(installation.settings) as curator:
            ana = curator.access.analyst("ana")
            curator.access.revoke_grant(ana.id, "people", by="t")
            curator.access.revoke("ana", by="t")
            curator.ledger.set_population_cap("people", epsilon=2.0, delta=0.01, by="t")
        return real(engine, ready, reservation)

    monkeypatch.setattr(LocalEngine, "execute", meanwhile)
    assert api.post("/v1/releases", MEAN).status_code == 201
    assert api.get("/v1/budget").status_code == 401
    ana = api.services.access.analyst("ana")
    assert (ana.revoked, ana.live_keys, api.services.access.grants(ana.id)) == (True, 0, ())
    cap = api.services.ledger.population_balance("people")
    assert cap is not None
    assert (cap.cap.primary, cap.spent.primary) == (2 * 10**9, 5 * 10**8)
    assert api.services.ledger.verify() == []


@pytest.mark.slow
@pytest.mark.sample(4)
def test_nobody_is_lost_when_many_are_added_at_once(
    services: Services, installation: Installation
) -> None:
    """By two processes' worth of connections, while answers are charged."""
    api = Api(services, installation.keys["ana"])
    names = [f"new{i}" for i in range(16)]

    def add(name: str) -> str:
        if int(name[3:]) % 4 == 0:
            assert api.post("/v1/releases", MEAN).status_code == 201
        return installation.analyst(name, epsilon=1.0, delta=1e-5)

    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(add, names))
    assert {a.name for a in services.access.analysts()} == {"ana", "bob", "eve", *names}
    assert all(Api(services, key).get("/v1/datasets/people").status_code == 200 for key in keys)
    assert len(services.ledger.all_balances()) == 4 + len(names)
    assert len(api.get("/v1/releases").json()["releases"]) == 4
    assert services.ledger.verify() == []


PLACES: dict[str, tuple[Any, str]] = {
    "opening the rows": (LocalEngine, "_table"),
    "reading": (readers, "_shape"),
    "a pass": (registry, "encode_all"),
    "a mechanism": (registry, "release"),
    "the whole engine": (LocalEngine, "execute"),
}
ERRORS = [Unavailable("The vault is away."), RuntimeError("7"), MemoryError(), RecursionError()]


@pytest.mark.sample(20)
@pytest.mark.parametrize("place", list(PLACES))
@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_no_error_comes_before_the_deadline(
    installation: Installation,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    error: Exception,
) -> None:
    """Wherever it happens after the charge, a reply of any status comes on the grid."""
    clock = SetClock()
    settings = installation.settings.model_copy(update={"reply_grid_ms": 100})
    with opened(settings, clock) as services:
        api = Api(services, installation.keys["ana"])
        started = clock.monotonic()
        monkeypatch.setattr(*PLACES[place], broken(error))
        reply = api.post("/v1/releases", request_body(MEAN["query"], epsilon=0.01))
        assert clock.monotonic() - started == pytest.approx(0.1, abs=1e-6)
    assert (reply.status_code, reply.json().get("status")) in {
        (201, "failed"),
        (503, 503),
        (500, 500),
    }
    assert "7" not in reply.json().get("detail", "")


def test_a_failure_is_logged_when_it_becomes_visible(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line of the log is a time, too: between which other lines it stands."""
    clock = SetClock()
    settings = installation.settings.model_copy(update={"reply_grid_ms": 100})
    with opened(settings, clock) as services, capture_logs() as lines:
        monkeypatch.setattr(registry, "release", broken(ZeroDivisionError("7")))
        lines_at: list[int] = []
        monkeypatch.setattr(clock, "sleep", lambda _: lines_at.append(len(lines)))
        reply = Api(services, installation.keys["ana"]).post("/v1/releases", MEAN)
    assert lines_at == [0]
    assert [line["event"] for line in lines] == ["computation_failed", "request"]
    assert lines[0]["release_id"] == reply.json()["id"]


def test_refusals_before_a_charge_do_not_wait_and_tell_nothing_of_rows(
    installation: Installation,
) -> None:
    """They come at once: from the catalogue and the ledger alone."""
    clock = SetClock()
    settings = installation.settings.model_copy(update={"reply_grid_ms": 100})
    with opened(settings, clock) as services:
        api = Api(services, installation.keys["ana"])
        dear = api.post("/v1/releases", request_body(epsilon=99.0, delta=0.009))
        assert dear.status_code == 403
        assert api.post("/v1/plans", MEAN).status_code == 200
        assert clock.time == SetClock().time


def test_a_ledger_that_cannot_be_written_answers_nothing(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No charge, no computation."""
    ran: list[Any] = []
    monkeypatch.setattr(LocalEngine, "execute", lambda *_: ran.append(1))
    monkeypatch.setattr(Ledger, "reserve", broken(Unavailable("It did not answer.")))
    assert api.post("/v1/releases", MEAN).status_code == 503
    assert ran == []


def test_a_reservation_that_the_ledger_does_not_know_computes_nothing(services: Services) -> None:
    ready = planning.plan(services.catalog.facts("people"), Mean("y"), Privacy(0.5))
    forged = Reservation("rel_forged", ready.facts.version_id, ready.cost, "2026-01-01T00:00:00Z")
    with pytest.raises(ReticentError):
        services.engine.execute(ready, forged)


@pytest.mark.slow
@pytest.mark.sample(4)
def test_a_cost_is_estimated_without_a_look_at_the_rows(
    services: Services, installation: Installation
) -> None:
    """Of every kind: here opening a row ends the process."""
    blind = without_reader(services)
    ana = services.access.authenticate(installation.keys["ana"])
    assert ana is not None
    for kind, fields in FIELDS.items():
        ask = RequestBody.model_validate(request_body({"kind": kind} | fields)).ask()
        ready = answer.plan(blind, ana, ask)
        assert ready.cost.epsilon > 0
        assert ready.deadline_ms > 0
    for ask in (MEAN, MEAN | {"dataset": "secret"}, MEAN | {"query": {"kind": "mean"}}):
        Api(blind, installation.keys["ana"]).post("/v1/plans", ask)
    with pytest.raises(SystemExit):
        answer.answer(blind, ana, RequestBody.model_validate(MEAN).ask())


SCORES: dict[str, dict[str, Any]] = {
    test: {"kind": "hypothesis_test", "formula": "y ~ x", "hypothesis": ["x = 2"], "test": test}
    for test in ("wald", "score", "lr")
} | {
    "fit": {"kind": "linear_regression", "formula": "y ~ x"},
    "logistic fit": {"kind": "glm", "formula": "b ~ x", "family": "binomial"},
    "location": {"kind": "location_scale", "column": "y"},
}


@pytest.mark.slow
@pytest.mark.sample(4)
def test_no_score_of_private_rows_comes_without_noise(api: Api) -> None:
    """What is computed from the same rows twice differs, and no measure of fit is there besides."""
    for name, query in SCORES.items():
        body = request_body(query, epsilon=8.0)
        replies = [api.post("/v1/releases", body).json() for _ in range(2)]
        first, second = (reply["result"] for reply in replies)
        scores = first.keys() & {"statistic", "coefficients", "location"}
        assert scores, name
        assert all(first[score] != second[score] for score in scores), (name, first)
        words = " ".join(first).lower()
        for measure in (
            "r_squared",
            "likelihood",
            "residual",
            "deviance",
            "accuracy",
            "loss",
            "aic",
        ):
            assert measure not in words, name
