# SPDX-License-Identifier: Apache-2.0
"""The last version's client is served by this server, and the last server's replies are read by
this client.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

import reticent
from support.client.stored_replies import Exchange, rich, stored
from support.installations.small import Api, Installation, opened
from support.kinds.examples import FIELDS

STORED = stored()


@pytest.fixture(scope="module")
def api(
    installation_template: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Api]:
    """One for all."""
    directory = tmp_path_factory.mktemp("last") / "installation"
    shutil.copytree(installation_template.directory, directory)
    installation = replace(installation_template, directory=directory)
    key = rich(installation)
    with opened(installation.settings) as services:
        yield Api(services, key)


@pytest.fixture
def exchange(kind: str) -> Exchange:
    return STORED[kind]


def shape(value: Any) -> Any:
    """The names in a document, however deep; of a list, those of its first entry."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    if isinstance(value, list) and value:
        return [shape(value[0])]
    return None


def missing(old: Any, new: Any, path: str = "") -> list[str]:
    """Names of the old document that the new one does not have. (What may be null, may be so.)"""
    if isinstance(old, dict) and isinstance(new, dict):
        gone = [f"{path}.{name}" for name in old if name not in new]
        both = (missing(old[name], new[name], f"{path}.{name}") for name in old if name in new)
        return [*gone, *(each for found in both for each in found)]
    if isinstance(old, list) and isinstance(new, list):
        return missing(old[0], new[0], f"{path}[]")
    return []


def test_something_is_stored_of_every_kind_of_the_last_version() -> None:
    assert len(STORED) >= 15
    assert set(STORED) <= set(FIELDS)
    for kind, exchange in STORED.items():
        assert exchange.request["query"]["kind"] == exchange.reply["query"]["kind"] == kind
        assert exchange.reply["status"] == "reply"


def as_asked(new: Any, old: Any) -> Any:
    """Of a question and the questions inside it, the fields that the old version knew."""
    if not isinstance(old, dict):
        return new
    return {name: as_asked(new[name], each) for name, each in old.items()}


@pytest.mark.sample(12)
@pytest.mark.parametrize("kind", STORED)
def test_what_the_last_client_sends_is_answered_as_it_expects(api: Api, exchange: Exchange) -> None:
    reply = api.post("/v1/releases", exchange.request)
    assert reply.status_code == 201, reply.text
    document = reply.json()
    assert document["status"] in {"reply", "no_reply"}
    old = exchange.reply if document["result"] else exchange.reply | {"result": None}
    assert missing(shape(old), shape(document)) == []
    assert document["dataset"] == old["dataset"]
    assert as_asked(document["query"], old["query"]) == old["query"]


@pytest.mark.parametrize("kind", STORED)
def test_what_the_last_server_replied_is_read(exchange: Exchange) -> None:
    def reply(request: httpx.Request) -> httpx.Response:
        assert request.url.path == f"/v1/releases/{exchange.reply['id']}"
        return httpx.Response(200, json=exchange.reply)

    transport = httpx.MockTransport(reply)
    with reticent.Client("http://test", key="rk_1", transport=transport) as client:
        answer = client.release(exchange.reply["id"])
    assert type(answer).__name__ == exchange.read_as
    assert answer.release == exchange.reply
    assert answer.charged.epsilon == exchange.reply["charged"]["epsilon"]
    assert "differentially private" in " ".join(str(answer.summary()).split())
    assert set(exchange.columns) <= set(map(str, answer.to_frame().columns))
    assert len(answer.to_frame()) >= 1


def test_a_name_that_is_gone_is_seen() -> None:
    old = json.loads('{"result": {"terms": [{"a": 1, "b": 2}]}, "id": 1}')
    new = json.loads('{"result": {"terms": [{"a": 1}]}, "more": 1}')
    assert missing(shape(old), shape(new)) == [".id", ".result.terms[].b"]
