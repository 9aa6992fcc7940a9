# SPDX-License-Identifier: Apache-2.0
"""The number of rows appears nowhere: two tables of the same persons with other numbers of rows are
one to an analyst.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent_server.catalog.json_values import source_to_json
from reticent_server.cli.dataset_load import load_dataset
from reticent_server.cli.init import prepare
from reticent_server.domain.plan import Plan
from reticent_server.domain.query import Privacy
from reticent_server.domain.reservation import Reservation
from reticent_server.engine.local import LocalEngine
from reticent_server.errors import ReticentError
from reticent_server.intake.registers import Asked, add_population
from reticent_server.kinds.registry import stored_query
from reticent_server.pipeline import planning
from reticent_server.pipeline.documents import dataset_json
from reticent_server.pipeline.forecasts import forecast_json
from reticent_server.pipeline.services import Services
from reticent_server.vault.readers import open_reader
from support.installations.small import SCHEMA, Installation, opened
from support.kinds.examples import QUERIES
from support.seeds import seeded

PERSONS, M = 60, 5
PANEL = SCHEMA + f"unit: {{column: id, max_rows: {M}}}\n"


def rows(lengths: np.ndarray) -> str:
    rng, lines = seeded(2), ["id,y,x,k,g,b,m"]
    for person, length in enumerate(lengths):
        for place in range(M):
            x, e, u = rng.normal(), rng.normal(), rng.random()
            cells = f"{x + e:.3f},{x:.3f},{rng.integers(10)},{rng.choice(list('abc'))}"
            cells += f",{rng.integers(2)},{u:.3f}"
            if place < length:
                lines.append(f"p{person},{cells}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Services]]:
    """Installations whose tables have 60 to 300 rows of the same 60 persons."""
    with ExitStack() as stack:
        found = []
        for lengths in (np.full(PERSONS, 1), np.arange(PERSONS) % M + 1, np.full(PERSONS, M)):
            folder = tmp_path_factory.mktemp("panel")
            settings = Installation(folder, {}).settings
            prepare(settings)
            (folder / "s.yaml").write_text(PANEL)
            (folder / "rows.csv").write_text(rows(lengths))
            load_dataset(settings, "panel", folder / "rows.csv", folder / "s.yaml")
            found.append(stack.enter_context(opened(settings)))
        yield found


def plan_of(services: Services, name: str) -> Plan | str:
    facts = services.catalog.facts("panel")
    try:
        return planning.plan(facts, stored_query(QUERIES[name]), Privacy(2.0, 1e-6))
    except ReticentError as error:
        return f"{type(error).__name__}: {error.detail}"


def public(plan: Plan | str) -> Any:
    """All that is said of a plan before anything is charged."""
    if isinstance(plan, str):
        return plan
    own = (plan.cost, plan.guarantee, plan.deadline_ms, plan.planned.passes, plan.planned.parts)
    return own, json.dumps(forecast_json(plan))


@pytest.mark.slow
def test_the_data_set_is_described_the_same(served: list[Services]) -> None:
    facts = [services.catalog.facts("panel") for services in served]
    assert [f.n for f in facts] == [PERSONS] * 3
    described = [json.dumps(dataset_json(f)) for f in facts]
    assert described[0] == described[1] == described[2]
    sources = [
        source_to_json(s.catalog.source(f.version_id)) for s, f in zip(served, facts, strict=True)
    ]
    for source in sources:
        source.pop("table")
        for drawn in ("names", "spine", "mark"):  # by each installation's key, or by chance
            source.pop(drawn)
    assert sources[0] == sources[1] == sources[2]


@pytest.mark.slow
@pytest.mark.sample(24)
@pytest.mark.parametrize("name", list(QUERIES))
def test_every_kind_is_planned_the_same(served: list[Services], name: str) -> None:
    found = [public(plan_of(services, name)) for services in served]
    assert found[0] == found[1] == found[2]


@pytest.mark.sample(32)
@pytest.mark.parametrize("name", list(QUERIES))
def test_every_kind_that_is_planned_has_an_answer_with_the_number_of_persons(
    served: list[Services], name: str
) -> None:
    for services in served[:1]:
        plan = plan_of(services, name)
        if isinstance(plan, str):
            assert any(w in plan for w in ("protected unit", "rows", "records", "one row"))
            return
        release = executed(services, plan)
        assert release.status in {"reply", "no_reply"}
        if release.result is not None and "n" in release.result:
            assert release.result["n"] == PERSONS


class _Ledger:
    def confirm(self, reservation: Reservation) -> bool:
        return bool(reservation)


def executed(services: Services, plan: Plan) -> Any:
    source = services.catalog.source(plan.facts.version_id)
    reader = open_reader(_url(services, source.table), source)
    engine = LocalEngine(lambda _: reader, _Ledger(), cache_bytes=0, threads=1, block_rows=64)
    try:
        return engine.execute(plan, Reservation("r", plan.facts.version_id, plan.cost, ""))
    finally:
        engine.close()


def _url(services: Services, table: str) -> str:
    """Of the vault that has the table: each installation has a directory of its own."""
    path = Path(str(services.catalog._engine.url.database))
    assert table
    return f"sqlite:///{path.parent / 'vault.db'}"


@pytest.fixture(scope="module")
def with_gaps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """A table with one row a person, in a population with more places."""
    folder = tmp_path_factory.mktemp("gaps")
    settings = Installation(folder, {}).settings
    prepare(settings)
    (folder / "s.yaml").write_text(PANEL.replace(f"max_rows: {M}", "max_rows: 1"))
    (folder / "rows.csv").write_text(rows(np.full(PERSONS, 1)))
    with opened(settings) as services:
        places = Asked("panel", "id", capacity=PERSONS + 20)
        add_population(settings, services.catalog, services.approvals, places, by="t")
        load_dataset(settings, "panel", folder / "rows.csv", folder / "s.yaml")
        yield services


@pytest.mark.sample(24)
@pytest.mark.parametrize("name", list(QUERIES))
def test_every_kind_is_answered_or_refused_where_places_are_empty(
    with_gaps: Services, name: str
) -> None:
    plan = plan_of(with_gaps, name)
    if isinstance(plan, str):
        assert any(word in plan for word in ("protected unit", "rows", "records", "one row")), plan
        return
    release = executed(with_gaps, plan)
    assert release.status in {"reply", "no_reply"}
    if release.result is not None and "n" in release.result:
        assert release.result["n"] == PERSONS + 20
