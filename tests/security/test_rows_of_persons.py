# SPDX-License-Identifier: Apache-2.0
"""How many rows persons have is in no reply, page or metric: two servers whose tables have the same 60 persons, with
one row each and with five, say the same to an analyst and to whoever measures them, but for noise, identifiers and times."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
import pytest

from reticent_server.app import create_app
from reticent_server.cli.dataset_load import load_dataset
from reticent_server.cli.init import prepare
from reticent_server.domain.roles import STAFF
from reticent_server.pipeline.services import Services
from support.installations.bench import Browser
from support.installations.small import SCHEMA, Api, Installation, curators_port, opened

PERSONS, M = 60, 5
QUERIES: list[dict[str, Any]] = [
    {"kind": "count", "where": "x > 0"},
    {"kind": "mean", "column": "y"},
    {"kind": "sum", "column": "x"},
    {"kind": "histogram", "column": "g"},
    {"kind": "crosstab", "columns": ["g", "b"]},
    {"kind": "quantiles", "column": "y"},
    {"kind": "profile"},
    {"kind": "linear_regression", "formula": "y ~ x"},
    {"kind": "linear_regression", "formula": "y ~ x", "effects": "person"},
    {"kind": "glm", "formula": "b ~ x", "family": "binomial"},
    {"kind": "t_test", "column": "y", "group": "b"},
    {"kind": "linear_regression", "formula": "y ~ nobody"},
    {"kind": "count", "where": "x > "},
]
PATHS = ("/v1/datasets", "/v1/datasets/panel", "/v1/budget", "/v1/releases", "/v1/projects", "/healthz", "/readyz")  # fmt: skip
PAGES = (
    "/workbench",
    "/workbench/datasets/panel",
    "/workbench/datasets/panel?kind=linear_regression&q.formula=y+~+x&epsilon=1",
    "/workbench/releases",
    "/workbench/budget",
)
PRIVACY = {"epsilon": 2.0, "delta": 1e-6}
CHANGING = re.compile(
    r"[0-9a-f]{16,}|(?:rel|req|res|acc|an|ds|ver|pop)_[A-Za-z0-9_-]+|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.]+Z?)?"
    r"|[0-9]{2}:[0-9]{2}(?::[0-9]{2})?|nonce-[A-Za-z0-9+/=_-]+|nonce=\"[^\"]*\""
)
"""Identifiers, hashes and times."""
MEASURED = re.compile(r"seconds|bytes|process_|python_|_ms|_created|overrun|late")
"""Metrics that measure the machine: their times are planned, which tests of reply times look at."""


@dataclass(frozen=True)
class Told:
    """What a server has said: replies and pages by request, and by how much its metrics have grown."""

    replies: dict[str, Any]
    metrics: dict[str, float]


def rows(length: int) -> str:
    rng, lines = np.random.default_rng(2), ["id,y,x,k,g,b,m"]
    for person in range(PERSONS):
        for place in range(M):
            x, e, u = rng.normal(), rng.normal(), rng.random()
            cells = f"{x + e:.3f},{x:.3f},{rng.integers(10)},{rng.choice(list('abc'))}"
            if place < length:
                lines.append(f"p{person},{cells},{rng.integers(2)},{u:.3f}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Told]]:
    with ExitStack() as stack:
        found = []
        for length in (1, M):
            folder = tmp_path_factory.mktemp("panel")
            settings = Installation(folder, {}).settings
            prepare(settings)
            (folder / "s.yaml").write_text(SCHEMA + f"unit: {{column: id, max_rows: {M}}}\n")
            (folder / "rows.csv").write_text(rows(length))
            load_dataset(settings, "panel", folder / "rows.csv", folder / "s.yaml")
            found.append(walked(stack.enter_context(opened(settings))))
        yield found


def walked(services: Services) -> Told:
    """Everything that an analyst may ask, and what a curator's metrics say afterwards."""
    services.ledger.set_population_cap("panel", epsilon=1e3, delta=0.01, rule="basic", by="t")
    analyst, key = services.access.add_analyst("ana", by="t")
    budget: dict[str, Any] = {"epsilon": 1e2, "delta": 1e-3, "rule": "basic", "by": "t"}
    services.ledger.set_analyst_budget(analyst, "panel", "panel", **budget)
    services.access.grant(analyst, "panel", by="t")
    curator = services.access.add_curator("cura", STAFF, by="t")
    before, api, said = measured(services, curator), Api(services, key), {}
    for query in QUERIES:
        body = {"dataset": "panel", "query": query, "privacy": PRIVACY}
        said[f"plan {query}"] = shown(api.post("/v1/plans", body))
        reply = api.post("/v1/releases", body)
        said[f"release {query}"] = shown(reply)
        if reply.status_code == 201:
            said[f"again {query}"] = shown(api.get(f"/v1/releases/{reply.json()['id']}"))
    for path in PATHS:
        said[path] = shown(api.get(path))
    browser = Browser(create_app(services), services, httpx.Cookies())
    assert browser.sign_in(key).status_code == 303
    for path in PAGES:
        reply = browser.get(path)
        assert reply.status_code == 200
        said[path] = CHANGING.sub("…", reply.text)
    after = measured(services, curator)
    return Told(said, {name: round(x - before.get(name, 0.0), 9) for name, x in after.items()})


def measured(services: Services, key: str) -> dict[str, float]:
    """All metrics that do not measure the machine; counters are of this process."""
    lines = curators_port(services, "/metrics", key).text.splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs if not MEASURED.search(name)}


def shown(reply: httpx.Response) -> Any:
    """Status, the names of the headers, and the body without noise, identifiers and times."""
    body = reply.json()
    return reply.status_code, sorted(reply.headers), without_noise(body)


def without_noise(document: Any) -> Any:
    """A document whose results are told by their form alone."""
    if isinstance(document, dict):
        return {
            key: form(value) if key == "result" else without_noise(value)
            for key, value in document.items()
            if key not in {"seal", "fingerprint", "signature", "hash", "previous"}
        }
    if isinstance(document, list):
        return [without_noise(value) for value in document]
    return CHANGING.sub("…", document) if isinstance(document, str) else document


def form(value: Any) -> Any:
    """Keys and lengths; n and what is planned word for word. Warnings, flags and missing intervals are made of noisy values."""
    if isinstance(value, dict):
        kept = {"n", "terms", "steps", "shares", "confidence_level", "tuning", "edges", "levels"}
        return {
            key: each if key in kept else form(each)
            for key, each in value.items()
            if key != "warnings"
        }
    if isinstance(value, list):
        return [form(each) for each in value]
    return None


def test_every_reply_and_page_is_the_same(told: list[Told]) -> None:
    few, many = told
    assert few.replies.keys() == many.replies.keys()
    for request, reply in few.replies.items():
        assert reply == many.replies[request], request
    replied = [v[0] for k, v in few.replies.items() if k.startswith("release")]
    assert replied.count(201) >= 9
    assert replied.count(422) >= 3


def test_every_metric_is_the_same(told: list[Told]) -> None:
    few, many = told
    assert any("releases_total" in name for name in few.metrics)
    assert few.metrics == many.metrics


def test_another_number_of_persons_would_be_seen(told: list[Told]) -> None:
    """What is looked at is there: the data set's document and page tell n, the number of persons."""
    for path in ("/v1/datasets/panel", "/workbench/datasets/panel"):
        assert re.search(rf"\b{PERSONS}\b", json.dumps(told[0].replies[path])), path
