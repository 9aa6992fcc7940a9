# SPDX-License-Identifier: Apache-2.0
"""A published release: who reads it, what the audit trail says, and that nobody is charged
again.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from reticent_server.cli import dataset
from reticent_server.database import writing
from reticent_server.errors import Conflict, NotFound, Unavailable
from reticent_server.pipeline import publishing
from reticent_server.pipeline.oversight import trail
from reticent_server.pipeline.profile import release_profile
from reticent_server.pipeline.services import Services
from support.installations.both_backends import installation
from support.installations.small import Api, Installation, opened, request_body

__all__ = ["installation"]

STUDY = {"kind": "study", "variables": ["y", "x"]}
SILENT = {"kind": "iqr", "column": "x", "mechanism": "ptr"}
"""Its test of safety does not pass at this epsilon on 400 rows."""


@pytest.fixture
def services(installation: Installation) -> Iterator[Services]:
    with opened(installation.settings) as services:
        yield services


@pytest.fixture
def ana(services: Services, installation: Installation) -> Api:
    return Api(services, installation.keys["ana"])


def released(api: Api, query: Any = None) -> Any:
    return api.post("/v1/releases", request_body(query or STUDY, epsilon=1.0)).json()


@pytest.mark.sample(4)
@pytest.mark.slow
def test_others_with_a_grant_read_it_for_nothing(
    services: Services, ana: Api, installation: Installation
) -> None:
    study = released(ana)
    other = Api(services, installation.analyst("carla", epsilon=1.0, delta=1e-5))
    place = "/v1/datasets/people/published"
    assert other.get(place).json() == {"releases": [], "next_offset": None}
    spent = other.get("/v1/budget").content
    publishing.publish(services, study["id"], by="cli:t")
    count = released(ana, {"kind": "count"})
    publishing.publish(services, count["id"], by="cli:t")
    assert other.get(place).json()["releases"] == [count, study]
    first = other.get(f"{place}?limit=1").json()
    assert ([r["id"] for r in first["releases"]], first["next_offset"]) == ([count["id"]], 1)
    assert other.get("/v1/budget").content == spent
    assert other.get("/v1/releases").json()["releases"] == []


@pytest.mark.sample(4)
def test_nobody_without_a_grant_reads_it(
    services: Services, ana: Api, installation: Installation
) -> None:
    publishing.publish(services, released(ana)["id"], by="cli:t")
    bob = Api(services, installation.keys["bob"])
    assert bob.get("/v1/datasets/people/published").status_code == 404
    assert bob.get("/v1/datasets/secret/published").json()["releases"] == []


@pytest.mark.sample(4)
def test_it_is_an_act_in_the_chain_and_published_once(services: Services, ana: Api) -> None:
    study = released(ana)
    publishing.publish(services, study["id"], by="cli:t")
    row = trail(services).rows[0]
    assert (row.action, row.who) == ("release.publish", "cli:t")
    assert study["id"] in row.about
    assert services.ledger.verify() == []
    with pytest.raises(Conflict, match="already"):
        publishing.publish(services, study["id"], by="cli:t")


@pytest.mark.sample(4)
@pytest.mark.slow
def test_only_what_was_answered_is_published(services: Services, ana: Api) -> None:
    with pytest.raises(NotFound):
        publishing.publish(services, "rel_none", by="cli:t")
    profile = release_profile(services, "people", epsilon=1.0)
    with pytest.raises(Conflict, match="profile"):
        publishing.publish(services, profile["id"], by="cli:t")
    silent = released(ana, SILENT)
    assert silent["status"] == "no_reply"
    with pytest.raises(Conflict, match="with a reply"):
        publishing.publish(services, silent["id"], by="cli:t")


@pytest.mark.sample(4)
def test_a_row_that_was_added_in_the_database_is_shown_to_nobody(
    services: Services, ana: Api
) -> None:
    study = released(ana)
    with writing(services.catalog._engine) as connection:
        connection.execute(
            text("INSERT INTO published_releases (release_id, dataset) VALUES (:r, 'people')"),
            {"r": study["id"]},
        )
    with pytest.raises(Unavailable):
        services.catalog.published("people")
    assert services.ledger.verify() != []


@pytest.mark.sample(4)
def test_the_command(
    installation: Installation, services: Services, ana: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = released(ana)
    for name, value in installation.environment.items():
        if name.startswith("RETICENT_"):
            monkeypatch.setenv(name, value)
    runner = CliRunner()
    asked = runner.invoke(dataset.app, ["publish", study["id"]], input="n\n")
    assert (asked.exit_code, services.catalog.published("people")) == (1, [])
    done = runner.invoke(dataset.app, ["publish", study["id"], "--yes", "--json"])
    said = {"release": study["id"], "dataset": "people", "kind": "study", "state": "published"}
    assert (done.exit_code, json.loads(done.stdout)) == (0, [said])
    assert services.catalog.published("people") == [study["id"]]
