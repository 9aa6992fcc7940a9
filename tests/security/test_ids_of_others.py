# SPDX-License-Identifier: Apache-2.0
"""Ids of somebody else's things, wherever one can be given: the same reply as for what there is
not.

(Projects of others are in tests/server/pipeline/test_projects.py.)
"""

import re

import httpx
import pytest

from support.installations.bench import Bench, Browser, bench
from support.installations.small import Api, request_body

__all__ = ["bench"]

PATHS = [
    ("GET", "/v1/releases/{release}"),
    ("DELETE", "/v1/releases/{release}"),
    ("GET", "/v1/releases/{later}"),
    ("DELETE", "/v1/releases/{later}"),
    ("GET", "/v1/datasets/{dataset}"),
    ("GET", "/v1/datasets/{dataset}/published"),
]
PAGES = [
    "/workbench/releases/{release}",
    "/workbench/releases/{later}",
    "/workbench/releases/{release}/export/csv",
    "/workbench/releases/{release}/export/json",
    "/workbench/compare?release={release}&release={own}",
    "/workbench/compare?release={own}&release={release}",
    "/workbench/datasets/{dataset}",
]
ABSENT = {"release": "rel_absent", "later": "rel_absent", "dataset": "absent"}


@pytest.fixture
def bobs(bench: Bench) -> dict[str, str]:
    """Ids of bob's things, and of a release of ana's own."""
    bob = Api(bench.services, bench.keys["bob"])
    body = request_body() | {"dataset": "secret"}
    made = bob.post("/v1/releases", body)
    later = bob.post("/v1/releases", body, headers={"Prefer": "respond-async"})
    own = Api(bench.services, bench.keys["ana"]).post("/v1/releases", request_body())
    assert (made.status_code, later.status_code, own.status_code) == (201, 202, 201)
    ids = {"release": made.json()["id"], "later": later.json()["id"], "own": own.json()["id"]}
    return ids | {"dataset": "secret"}


def same(reply: httpx.Response) -> tuple[int, str]:
    """What could tell something: without the tokens of forms, which are new each time."""
    return reply.status_code, re.sub(r"[0-9a-f]{96}", "", reply.text)


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_calls(bench: Bench, bobs: dict[str, str], method: str, path: str) -> None:
    ana = Api(bench.services, bench.keys["ana"])
    theirs = ana.send(method, path.format(**bobs))
    absent = ana.send(method, path.format(**bobs | ABSENT))
    assert theirs.status_code == 404
    assert (theirs.content, theirs.headers.raw) == (absent.content, absent.headers.raw)


@pytest.mark.parametrize("member", ["dataset", "project"])
@pytest.mark.parametrize("path", ["/v1/plans", "/v1/releases"])
def test_bodies(bench: Bench, bobs: dict[str, str], path: str, member: str) -> None:
    ana = Api(bench.services, bench.keys["ana"])
    theirs = ana.post(path, request_body() | {member: "secret"})
    absent = ana.post(path, request_body() | {member: "absent"})
    assert theirs.status_code == 404
    assert theirs.content == absent.content
    bob = bench.services.access.authenticate(bench.keys["bob"])
    assert bob is not None
    assert ana.post(path, request_body() | {"project": bob.id}).content == absent.content


@pytest.mark.parametrize("path", PAGES)
def test_pages(bench: Bench, bobs: dict[str, str], path: str) -> None:
    ana = bench.browser("ana")
    theirs, absent = ana.get(path.format(**bobs)), ana.get(path.format(**bobs | ABSENT))
    assert theirs.status_code == 404
    assert same(theirs) == same(absent)


def cancelled(browser: Browser, token: str, release_id: str) -> httpx.Response:
    return browser.post(f"/workbench/releases/{release_id}/cancel", data={"form_token": token})


def test_forms(bench: Bench, bobs: dict[str, str]) -> None:
    ana = bench.browser("ana")
    replies = [
        cancelled(ana, ana.form_token("/workbench/"), each)
        for each in (bobs["release"], bobs["later"], "rel_absent")
    ]
    assert {same(reply) for reply in replies} == {same(replies[0])}
    assert replies[0].status_code == 404
