# SPDX-License-Identifier: Apache-2.0
"""How fast this machine is: the first example of every kind, on rows that are made up, by an engine of its own."""

import time
from collections.abc import Iterator, Sequence
from statistics import fmean
from threading import Thread

import pyarrow as pa
import structlog

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Plan
from reticent_server.domain.private import Private
from reticent_server.domain.query import Privacy
from reticent_server.domain.reservation import Reservation
from reticent_server.engine.local import LocalEngine
from reticent_server.kinds import KINDS, example
from reticent_server.pipeline import planning
from reticent_server.pipeline.services import Services

RECORDS = 1 << 17
"""Enough that threads get their processes, which takes a second once; few enough for a few seconds in all."""

USUAL = 0.5
"""What the examples take of what is expected of them, on average, on the machine whose pace is 1."""

log = structlog.get_logger(__name__)


class MadeUp:
    """A reader of the example table, and the ledger of an engine that charges nobody."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._rows = example.rows(n)

    def batches(self, columns: Sequence[str]) -> Iterator[Private[pa.RecordBatch]]:
        arrays = {name: pa.array(self._rows[name]) for name in columns}
        yield Private(pa.RecordBatch.from_pydict(arrays))

    def confirm(self, reservation: Reservation) -> bool:
        return bool(reservation.id)


def example_plans(n: int, *, first: bool) -> list[tuple[str, Plan]]:
    """Kind and plan of every example (first: of each kind's first) that can be planned for n records without a profile."""
    facts = DatasetFacts("example", "example", 1, "example", n, example.SCHEMA, None)
    chosen = (
        (kind.name, question)
        for kind in KINDS
        if kind.for_analysts
        for question in kind.examples[: 1 if first else None]
    )
    return [(name, planning.plan(facts, question, Privacy(1.0, 1e-6))) for name, question in chosen]


def milliseconds(engine: LocalEngine, plan: Plan, repeats: int) -> float:
    """The best of some: what else the machine does only adds."""
    reservation = Reservation("example", "example", plan.cost, "")
    best = float("inf")
    for _ in range(repeats + 1):  # the first reads the columns, and starts processes
        started = time.perf_counter()
        engine.execute(plan, reservation)
        best = min(best, time.perf_counter() - started)
    return 1e3 * best


def speed_of(plans: Sequence[Plan], took: Sequence[float]) -> float:
    """How long the machine takes, relative to the one whose pace is 1; took: milliseconds of each plan."""
    ratios = [ms / (plan.expected_ms or ms) for plan, ms in zip(plans, took, strict=True)]
    return fmean(ratios) / USUAL


def keep_pace(services: Services, processes: int) -> None:
    """Measures the machine beside what the server does; deadlines are the plans' own until it is done.

    processes: that serve on it.
    """
    if services.settings.reply_grid_ms:
        Thread(target=_measure, args=(services, processes), name="pace", daemon=True).start()


def _measure(services: Services, processes: int) -> None:
    settings, table = services.settings, MadeUp(RECORDS)
    size = {"cache_bytes": 1 << 24, "block_rows": settings.block_rows}
    engine = LocalEngine(lambda _: table, table, threads=settings.threads, **size)
    try:
        plans = [plan for _, plan in example_plans(RECORDS, first=True)]
        speed = speed_of(plans, [milliseconds(engine, plan, 1) for plan in plans])
        services.pace.measured(speed, processes)
        log.info("pace_measured", speed=round(speed, 2))
    except Exception as error:  # noqa: BLE001 - deadlines stay the plans' own
        log.warning("pace_not_measured", error=type(error).__name__)
    finally:
        engine.close()
