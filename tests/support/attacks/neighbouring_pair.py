# SPDX-License-Identifier: Apache-2.0
"""Two neighbouring data sets in one server, and what an outsider can measure of their releases."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np

from reticent_server.cli.dataset_load import load_dataset
from reticent_server.kinds.profile.plan import profile_of
from reticent_server.pipeline.profile import release_profile
from support.installations.small import SCHEMA, Installation, opened, serving
from support.seeds import seeded

SIDES = ("left", "right")
Number = Callable[[dict[str, Any]], tuple[float, ...]]


@dataclass(frozen=True)
class Outcome:
    """One release as its caller sees it: status, the number asked for, and seconds; `numbers`: all
    that its reply holds, where they were asked for.
    """

    status: str
    value: float
    seconds: float
    rho: float
    numbers: tuple[float, ...] = ()


@dataclass(frozen=True)
class Pair:
    """The key of an analyst who may spend without end on both data sets."""

    installation: Installation
    key: str


def load_pair(installation: Installation, left: str, right: str, schema_text: str = SCHEMA) -> Pair:
    """Loads two CSV texts, with the columns of `people` unless told otherwise."""
    directory, schema = installation.directory, installation.directory / "pair.yaml"
    schema.write_text(schema_text)
    for name, text in zip(SIDES, (left, right), strict=True):
        (directory / f"{name}.csv").write_text(text)
        file = directory / f"{name}.csv"
        load_dataset(installation.settings, name, file, schema, separate="two worlds in one server")
    with opened(installation.settings) as services:
        budget: dict[str, Any] = {"epsilon": 1e7, "delta": 0.9, "rule": "basic", "by": "t"}
        analyst_id, key = services.access.add_analyst("prober", by="t")
        for name in SIDES:
            services.ledger.set_population_cap(name, **budget)
            services.ledger.set_analyst_budget(analyst_id, name, name, **budget)
            services.access.grant(analyst_id, name, by="t")
    return Pair(installation, key)


def share_profile(pair: Pair) -> None:
    """One profile for both, so that what is planned for them is alike."""
    with opened(pair.installation.settings) as services:
        released = release_profile(services, SIDES[0], epsilon=1.0)
        profile = profile_of(released["result"], released["id"])
        services.catalog.set_profile(services.catalog.facts(SIDES[1]).version_id, profile, by="t")


def neighbours(rows: int, changed: str) -> tuple[str, str]:
    """A table, and the same table with another first record."""
    rng = seeded(11)
    x, e = rng.normal(size=(2, rows))
    lines = [f"{1 + x[i] + e[i]:.3f},{x[i]:.3f},{i % 10},a,{i % 2},0.5" for i in range(rows)]
    head = "y,x,k,g,b,m"
    return "\n".join([head, *lines, ""]), "\n".join([head, changed, *lines[1:], ""])


def of_persons(
    persons: int, most: int, left: Sequence[str], right: Sequence[str]
) -> tuple[str, str]:
    """Two registers that differ in their first person, whose rows are given; the others have one to
    `most` rows.
    """
    rng, lines = seeded(12), []
    for person in range(1, persons):
        for _ in range(1 + person % most):
            x, e = rng.normal(size=2)
            lines.append(f"p{person},{1 + x + e:.3f},{x:.3f},{person % 9 + 1},a,{person % 2},0.5")
    own = ([f"p0,{row}" for row in rows] for rows in (left, right))
    first, second = ("\n".join(["id,y,x,k,g,b,m", *rows, *lines, ""]) for rows in own)
    return first, second


@contextmanager
def probing(pair: Pair, **settings: Any) -> Iterator["Prober"]:
    """A server for the pair, and a prober of it."""
    with serving(pair.installation, **settings) as server:
        yield Prober(server.url, pair.key)


@dataclass(frozen=True)
class Prober:
    """Asks about the two data sets in random order, from several connections."""

    url: str
    key: str

    def outcomes(
        self,
        query: dict[str, Any],
        privacy: dict[str, float],
        count: int,
        clients: int = 4,
        every: Number | None = None,
    ) -> dict[str, list[Outcome]]:
        """`count` outcomes for each of the two. every: the numbers of a result
        that are kept; None: the one of `_number`.
        """
        order = seeded(3).permutation(np.repeat([0, 1], count))
        asks = [{"dataset": SIDES[i], "query": query, "privacy": privacy} for i in order]

        def work(mine: list[dict[str, Any]]) -> list[Outcome]:
            headers = {"Authorization": f"Bearer {self.key}"}
            with httpx.Client(base_url=self.url, headers=headers, timeout=120) as http:
                return [_outcome(http, ask, every) for ask in mine]

        parts = [asks[i::clients] for i in range(clients)]
        with ThreadPoolExecutor(clients) as pool:
            done = list(pool.map(work, parts))
        found: dict[str, list[Outcome]] = {side: [] for side in SIDES}
        for mine, outcomes in zip(parts, done, strict=True):
            for ask, outcome in zip(mine, outcomes, strict=True):
                found[str(ask["dataset"])].append(outcome)
        return found


def _outcome(http: httpx.Client, ask: dict[str, Any], every: Number | None) -> Outcome:
    started = time.perf_counter()
    reply = http.post("/v1/releases", json=ask)
    seconds = time.perf_counter() - started
    assert reply.status_code == 201, reply.text
    release = reply.json()
    result, status, rho = release["result"], release["status"], release["charged"]["rho"]
    if every is not None:
        return Outcome(status, float("nan"), seconds, rho, every(result) if result else ())
    return Outcome(status, _number(result) if result else float("nan"), seconds, rho)


def _number(result: dict[str, Any]) -> float:
    """A regression's or a point's last coordinate, a table's last number, else the value."""
    found = next(result[k] for k in ("coefficients", "point", "values", "value") if k in result)
    return float(np.ravel(found)[-1])
