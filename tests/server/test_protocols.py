# SPDX-License-Identifier: Apache-2.0
"""Protocols that a curator has signed: a release that names one is what it says, or is refused
before any charge.
"""

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import typer
from sqlalchemy import text
from typer.testing import CliRunner, Result

import reticent
from reticent_server.certificate.signing import PROTOCOL, opened_detached
from reticent_server.cli import dataset
from reticent_server.cli import protocol as commands
from reticent_server.database import writing
from reticent_server.domain.protocol import LARGEST, Agreed, canonical_json
from reticent_server.errors import CuratorError, InvalidRequest
from support.installations.small import Api, Installation, opened

AGREED: dict[str, Any] = {
    "protocol": 1,
    "title": "x and y",
    "study": {"variables": ["y", "x", "C(g)"], "main": "y ~ x"},
    "epsilon": 2,
    "delta": 1e-6,
    "columns": {
        "y": {"kind": "numeric", "bounds": [-10, 10]},
        "x": {"kind": "numeric", "bounds": [-5, 5.0]},
        "g": {"kind": "categorical", "levels": ["a", "b", "c"]},
    },
    "sites": {"north": {}, "south": {"epsilon": 0.25, "without": ["x"]}},
}
QUERY = {"kind": "study", "variables": ["y", "x", "C(g)"], "main": "y ~ x"}


@dataclass(frozen=True)
class Desk:
    """A curator's terminal, and an analyst's requests to the server."""

    api: Api
    file: Path

    def run(self, *words: str) -> Result:
        command: typer.Typer = commands.app
        return CliRunner().invoke(command, words)

    def accept(self, site: str = "north") -> Result:
        return self.run("accept", str(self.file), "--dataset", "people", "--site", site)

    @property
    def digest(self) -> str:
        return Agreed.from_text(self.file.read_bytes()).digest

    def ask(
        self,
        path: str = "/v1/releases",
        key: str = "k",
        headers: Mapping[str, str] = MappingProxyType({}),
        **changes: Any,
    ) -> Any:
        privacy = {"epsilon": 2.0, "delta": 1e-6}
        body = {"dataset": "people", "query": QUERY, "privacy": privacy, "protocol": self.digest}
        sent = {k: v for k, v in (body | changes).items() if v is not None}
        return self.api.post(path, sent, headers={"Idempotency-Key": key, **headers})

    @property
    def spent(self) -> Any:
        return self.api.get("/v1/budget").json()["accounts"]


@pytest.fixture
def desk(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    for name, value in installation.environment.items():
        if name.startswith("RETICENT_"):
            monkeypatch.setenv(name, value)
    file = installation.directory / "protocol.json"
    file.write_text(json.dumps(AGREED))
    with opened(installation.settings) as services:
        yield Desk(Api(services, installation.keys["ana"]), file)


def test_a_signed_protocol_is_answered_and_charged_once(desk: Desk) -> None:
    assert desk.accept().exit_code == 0
    told = json.loads(desk.run("check", str(desk.file), "--json").stdout)
    assert told["digest"] == reticent.protocol(AGREED).digest
    assert set(told["signed"]) == {"north"}
    assert desk.ask("/v1/plans").status_code == 200
    found = desk.ask()
    assert found.status_code == 201, found.text
    paid = desk.spent
    assert desk.ask().content == found.content
    assert desk.spent == paid


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({"protocol": "0" * 64}, 403, "No protocol of that digest"),
        ({"protocol": "north"}, 422, ""),
        ({"query": QUERY | {"variables": ["y", "x"]}}, 422, "another question"),
        ({"query": QUERY | {"main": "y ~ x + g"}}, 422, "another question"),
        ({"query": QUERY | {"where": "b == 1"}}, 422, "another question"),
        ({"query": {"kind": "count"}}, 422, "another question"),
        ({"privacy": {"epsilon": 1.9, "delta": 1e-6}}, 422, "another epsilon"),
        ({"privacy": {"epsilon": 2.0}}, 422, "another epsilon"),
    ],
)
def test_what_differs_is_refused_and_charged_nothing(
    desk: Desk, changes: dict[str, Any], status: int, said: str
) -> None:
    desk.accept()
    before = desk.spent
    for path in ("/v1/plans", "/v1/releases"):
        reply = desk.ask(path, **changes)
        assert reply.status_code == status, reply.text
        assert reply.headers["content-type"] == "application/problem+json"
        assert said in reply.json()["detail"]
    assert desk.spent == before


def test_a_withdrawn_protocol_is_refused_and_its_releases_stay(desk: Desk) -> None:
    desk.accept()
    stored = desk.ask()
    assert desk.run("withdraw", desk.digest, "--dataset", "people").exit_code == 0
    paid = desk.spent
    assert desk.ask(key="another").status_code == 403
    assert desk.ask().content == stored.content
    assert desk.spent == paid
    assert desk.run("withdraw", desk.digest, "--dataset", "people").exit_code == 1
    assert "withdrawn" in desk.run("list").stdout
    assert desk.accept().exit_code == 0  # and it may be accepted again
    assert desk.ask(key="another").status_code == 201


@pytest.mark.slow
def test_a_data_set_that_asks_for_a_protocol_answers_nothing_else(desk: Desk) -> None:
    """Plans and releases alike, and whoever asks again has the release of before."""
    before = desk.ask(protocol=None, key="before")
    assert before.status_code == 201
    dataset_commands: typer.Typer = dataset.app
    words = ("policy", "people", "--protocol-required", "--json")
    shown = CliRunner().invoke(dataset_commands, words)
    assert json.loads(shown.stdout)[0]["protocol_required"] is True
    paid = desk.spent
    for path in ("/v1/plans", "/v1/releases"):
        refused = desk.ask(path, protocol=None, key="other")
        assert (refused.status_code, refused.json()["code"]) == (403, "policy")
        assert "name one" in refused.json()["detail"]
    later = {"Prefer": "respond-async"}
    assert desk.ask(protocol=None, key="later", headers=later).status_code == 403
    assert desk.ask(key="unknown").status_code == 403
    assert desk.spent == paid
    assert desk.ask(protocol=None, key="before").content == before.content
    assert desk.accept().exit_code == 0
    assert desk.ask(key="accepted").status_code == 201
    listed = desk.api.get("/v1/datasets/people").json()
    assert listed["policy"]["protocol_required"] is True
    CliRunner().invoke(dataset_commands, ("policy", "people", "--no-protocol-required"))
    assert desk.ask(protocol=None, key="again").status_code == 201


def test_another_site_of_the_protocol_is_asked_its_own_question(desk: Desk) -> None:
    assert desk.accept("south").exit_code == 0
    assert desk.ask().status_code == 422
    query = {"kind": "study", "variables": ["y", "C(g)"]}
    own = desk.ask(query=query, privacy={"epsilon": 0.25, "delta": 1e-6})
    assert own.status_code == 201, own.text


def test_a_row_that_was_changed_in_the_database_answers_nothing(desk: Desk) -> None:
    desk.accept()
    with writing(desk.api.services.access._engine) as connection:
        connection.execute(text("UPDATE access_protocols SET site = 'south'"))
    assert desk.ask().status_code == 503
    assert desk.api.services.ledger.verify()


def bounds(document: dict[str, Any]) -> None:
    document["columns"]["x"]["bounds"] = [-5, 4]


def levels(document: dict[str, Any]) -> None:
    document["columns"]["g"]["levels"] = ["b", "a", "c"]


def kind(document: dict[str, Any]) -> None:
    document["columns"]["y"]["kind"] = "integer"


def column(document: dict[str, Any]) -> None:
    document["columns"]["z"] = {"kind": "numeric"}


def variable(document: dict[str, Any]) -> None:
    document["study"]["variables"].append("z")


def epsilon(document: dict[str, Any]) -> None:
    document["epsilon"] = -1


def key(document: dict[str, Any]) -> None:
    document["sites"]["north"]["key"] = "another"


@pytest.mark.parametrize("change", [bounds, levels, kind, column, variable, epsilon, key])
def test_what_does_not_fit_the_data_set_is_not_signed(
    desk: Desk, change: Callable[[dict[str, Any]], None]
) -> None:
    document = copy.deepcopy(AGREED)
    change(document)
    desk.file.write_text(json.dumps(document))
    assert desk.accept().exit_code == 1
    assert "signatures" not in json.loads(desk.file.read_text())
    assert desk.ask().status_code == 403


def test_a_signature_is_of_one_protocol_and_by_the_key_that_it_states(desk: Desk) -> None:
    desk.accept()
    signed = json.loads(desk.file.read_text())
    found = Agreed.from_text(desk.file.read_bytes())
    (_, jws), fingerprint = (
        found.signatures[0],
        json.loads(desk.run("check", str(desk.file), "--json").stdout)["signed"]["north"],
    )
    assert opened_detached(jws, found.canonical, PROTOCOL) == fingerprint
    for wrong in (jws[:-4] + "AAAA", jws.replace("..", "."), "..", ""):
        with pytest.raises(CuratorError):
            opened_detached(wrong, found.canonical, PROTOCOL)
    desk.file.write_text(json.dumps(signed | {"epsilon": 3}))
    assert desk.run("check", str(desk.file)).exit_code == 1
    north = {"north": {"key": fingerprint}, "south": AGREED["sites"]["south"]}
    desk.file.write_text(json.dumps(AGREED | {"sites": north}))
    assert desk.accept().exit_code == 0


CHANGED: list[dict[str, Any]] = [
    {"epsilon": 10**400},
    {"title": 10**400},
    {"sites": {"north": {"bounds": {"y": []}}, "south": {}}},
    {"columns": {"y": {"levels": 5}}},
    {"title": "a" * LARGEST},
    {"sites": {"north": {}}},
    {"sites": {"a\x1b[2J": {}, "b": {}}},
    {"epsilon": "much"},
    {"epsilon": float("nan")},
    {"columns": []},
    {"signatures": [{}]},
    {"protocol": 2},
    {"format": "reticent-certificate-1"},
    {"study": AGREED["study"] | {"ridge": 1}},
    {"columns": {name: {"note": "x"} for name in AGREED["columns"]}},
    {"epsilon": 10**400},
]


@pytest.mark.parametrize(
    "text_",
    ["", "[]", "{}", "NaN", '{"protocol": 1}', "[" * 100_000]
    + [json.dumps(AGREED | change) for change in CHANGED]
    + ['{"title": "x",' + json.dumps(AGREED | {"title": "y"})[1:]],
)
def test_what_is_no_protocol_is_said(text_: str) -> None:
    with pytest.raises(InvalidRequest, match="no protocol"):
        Agreed.from_text(text_)


def test_client_and_server_read_a_protocol_alike() -> None:
    ours, theirs = Agreed.from_text(json.dumps(AGREED)), reticent.protocol(AGREED)
    assert ours.canonical == theirs.canonical
    for site in ours.sites:
        assert ours.question(site) == {"kind": "study"} | theirs.question(site)
        assert ours.privacy(site).epsilon == theirs.epsilon(site)


@pytest.mark.parametrize(
    ("number", "written"),
    [  # from RFC 8785, appendix B, and ECMA-262
        (0.0, "0"),
        (-0.0, "0"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (295147905179352830000, "295147905179352830000"),
        (1e21, "1e+21"),
        (999999999999999900000.0, "999999999999999900000"),
        (1e-6, "0.000001"),
        (9.999999999999997e-7, "9.999999999999997e-7"),
        (333333333.33333325, "333333333.33333325"),
        (0.5, "0.5"),
        (True, "true"),
    ],
)
def test_numbers_are_written_as_the_standard_says(number: float, written: str) -> None:
    assert canonical_json(number) == written
