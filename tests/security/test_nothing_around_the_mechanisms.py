# SPDX-License-Identifier: Apache-2.0
"""Every kind: what a reply says about rows has gone through a mechanism; free calls read no row.

The first is shown by replaying: the values that the mechanisms released on one table are released
again while the engine runs the same plan over quite another table. If a cell could reach the reply
by any other way, the two replies would differ.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent_server.domain.plan import Plan, Recipe
from reticent_server.domain.private import Private
from reticent_server.domain.query import Privacy
from reticent_server.domain.reservation import Reservation
from reticent_server.domain.steps import Block
from reticent_server.engine.local import LocalEngine
from reticent_server.kinds.mean.kind import Mean
from reticent_server.pipeline import planning
from reticent_server.pipeline.services import Services
from reticent_server.web.bodies import RequestBody
from support.attacks.tape import Tape
from support.installations.small import Api, Installation, request_body, without_reader
from support.kinds.examples import FIELDS
from support.kinds.results import replied
from support.seeds import seeded

MORE: dict[str, dict[str, Any]] = {
    "count where": {"kind": "count", "where": "k > 3 and g != 'a'"},
    "smooth median": {"kind": "median", "column": "y", "mechanism": "smooth_sensitivity"},
    "exponential median": {"kind": "median", "column": "m", "mechanism": "exponential"},
    "mean of a column with gaps": {"kind": "mean", "column": "m"},
    "influence": {"kind": "linear_regression", "formula": "y ~ x", "mechanism": "influence"},
    "factors": {"kind": "linear_regression", "formula": "y ~ x + C(g) + b:x", "where": "k < 9"},
}
QUERIES = {kind: {"kind": kind} | fields for kind, fields in FIELDS.items()} | MORE


class Rows:
    """400 invented rows with the columns of `people`, of a seed."""

    n = 400

    def __init__(self, seed: int) -> None:
        rng = seeded(seed)
        x = rng.normal(size=self.n) * (1 + seed)
        self._columns = {
            "y": np.clip(3 * seed - x + rng.standard_cauchy(self.n), -10, 10),
            "x": np.clip(x, -5, 5),
            "k": rng.integers(0, 10, self.n).astype(float),
            "g": rng.integers(0, 3, self.n).astype(float),
            "b": (rng.random(self.n) < 0.1 + 0.4 * seed).astype(float),
            "m": rng.random(self.n),
            "m:missing": rng.random(self.n) < 0.1 + 0.3 * seed,
        }

    def batches(self, columns: Any) -> Iterator[Private[Any]]:
        names = [n for c in columns for n in (c, f"{c}:missing") if n in self._columns]
        yield Private(pa.RecordBatch.from_pydict({n: self._columns[n] for n in names}))


class Anybody:
    """A ledger that confirms."""

    def confirm(self, _reservation: Reservation) -> bool:
        return True


def run(ready: Plan, seed: int) -> Any:
    engine = LocalEngine(
        lambda _: Rows(seed), Anybody(), cache_bytes=1 << 24, threads=2, block_rows=64
    )
    reservation = Reservation("rel_x", ready.facts.version_id, ready.cost, "2026-01-01T00:00:00Z")
    try:
        release = engine.execute(ready, reservation)
        return release.status, repr(release.result)
    finally:
        engine.close()


@pytest.mark.sample(24)
@pytest.mark.parametrize("name", list(QUERIES))
def test_a_reply_follows_from_what_was_released(
    services: Services, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    body = RequestBody.model_validate(request_body(QUERIES[name], epsilon=20.0, delta=1e-3))
    ready = planning.plan(services.catalog.facts("people"), body.ask().query, body.ask().privacy)
    tape = Tape(monkeypatch)
    first = run(ready, 0)
    tape.rewind()
    assert run(ready, 1) == first
    assert first[0] in ("reply", "no_reply")


class Leaky:
    """A plan whose map keeps a cell and puts it into the result."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def run(self) -> Recipe:
        seen: list[float] = []
        recipe = self._inner.run()
        step = next(recipe)

        def spying(block: Block) -> Any:
            seen.append(float(block.columns["y"][0]))
            return step.map_fn(block)

        released = yield replace(step, map_fn=spying)
        try:
            recipe.send(released)
        except StopIteration as stop:
            return {**replied(stop.value), "value": max(seen)}
        raise AssertionError("a mean has one step")


def test_the_replay_sees_a_leak(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = planning.plan(services.catalog.facts("people"), Mean("y"), Privacy(20.0, 1e-3))
    ready = replace(ready, planned=Leaky(ready.planned))
    tape = Tape(monkeypatch)
    first = run(ready, 0)
    tape.rewind()
    assert first[0] == "reply"
    assert run(ready, 1) != first


@pytest.mark.sample(24)
@pytest.mark.parametrize("name", list(QUERIES))
def test_planning_any_kind_reads_no_row(
    services: Services, installation: Installation, name: str
) -> None:
    """A reader that ends the process: costs, forecasts and refusals come without it."""
    api = Api(without_reader(services), installation.keys["ana"])
    assert api.post("/v1/plans", request_body(QUERIES[name])).status_code == 200
    tiny = api.post("/v1/plans", request_body(QUERIES[name], epsilon=1e-9, delta=1e-15))
    assert tiny.status_code in (200, 422)
    dear = api.post("/v1/releases", request_body(QUERIES[name], epsilon=99.0, delta=0.009))
    assert (dear.status_code, dear.json()["code"]) == (403, "budget_exhausted")
    assert api.get("/v1/releases").json()["releases"] == []
