# SPDX-License-Identifier: Apache-2.0
"""How fast this machine is: the examples of every kind, on rows that are made up, by an engine of
its own."""

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean
from threading import Thread

import pyarrow as pa

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Plan
from reticent_server.domain.private import Private
from reticent_server.domain.query import Privacy
from reticent_server.domain.reservation import Reservation
from reticent_server.engine.local import LocalEngine
from reticent_server.events import EventLogger
from reticent_server.kinds import KINDS, example
from reticent_server.pipeline import planning
from reticent_server.pipeline.pace import Shares
from reticent_server.pipeline.services import Services

FEW, RECORDS = 10**4, 1 << 17
"""Where what is between two passes takes the time, and where rows do: enough that threads get their
processes, which takes a second once; few enough for half a minute in all, beside what the server
does."""

ROUNDS = 3
"""Of which the first reads the columns and starts processes."""

USUAL = 0.5
"""What the examples take of what is expected of them, on average, on the machine whose pace is
1."""

log = EventLogger(__name__)


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
    """Kind and plan of every example (first: of each kind's first) that can be planned for n
    records without a profile."""
    facts = DatasetFacts("example", "example", 1, "example", n, example.SCHEMA, None)
    chosen = (
        (kind.name, question)
        for kind in KINDS
        if kind.for_analysts
        for question in kind.examples[: 1 if first else None]
    )
    return [(name, planning.plan(facts, question, Privacy(1.0, 1e-6))) for name, question in chosen]


def milliseconds(engine: LocalEngine, plans: Sequence[Plan], rounds: int) -> list[float]:
    """What each takes: the best of some rounds of all of them, since what else the machine does
    only adds, and passes."""
    best = [float("inf")] * len(plans)
    for _ in range(rounds):
        for k, plan in enumerate(plans):
            reservation = Reservation("example", "example", plan.cost, "")
            started = time.perf_counter()
            engine.execute(plan, reservation)
            best[k] = min(best[k], 1e3 * (time.perf_counter() - started))
    return best


def speed_of(plans: Sequence[Plan], took: Sequence[float]) -> float:
    """How long the machine takes, relative to the one whose pace is 1; took: milliseconds of each
    plan."""
    ratios = [ms / (plan.expected_ms or ms) for plan, ms in zip(plans, took, strict=True)]
    return fmean(ratios) / USUAL


def keep_pace(services: Services, processes: int) -> None:
    """Measures the machine beside what the server does; deadlines are the plans' own until it is
    done.

    processes: that serve on it.
    """
    if services.settings.reply_grid_ms:
        Thread(target=_measure, args=(services, processes), name="pace", daemon=True).start()


def _measure(services: Services, processes: int) -> None:
    try:
        speed, shares = measured(services.settings.threads, services.settings.block_rows)
        services.pace.measured(speed, processes, shares)
        log.info("pace_measured", speed=round(speed, 2), sorts=len(shares))
    except Exception as error:  # noqa: BLE001 - deadlines stay the plans' own
        log.warning("pace_not_measured", error=type(error).__name__)


def measured(threads: int, block_rows: int) -> tuple[float, Shares]:
    """The machine's speed, and the shares of all sorts of steady plans."""
    shares = defaultdict[str, dict[int, float]](dict)
    for n in (FEW, RECORDS):
        taken = _taken(n, threads, block_rows)
        for plan, ms in taken:
            if plan.sort is not None:
                known = shares[plan.sort]
                known[n] = max(known.get(n, 0.0), ms / (plan.expected_ms or ms))
    firsts = [plan.query for _, plan in example_plans(RECORDS, first=True)]
    usual = [(plan, ms) for plan, ms in taken if plan.query in firsts]
    return speed_of([plan for plan, _ in usual], [ms for _, ms in usual]), shares


def _taken(n: int, threads: int, block_rows: int) -> list[tuple[Plan, float]]:
    """What every kind's first example takes, and all that are steady: plan and milliseconds."""
    firsts = [plan for _, plan in example_plans(n, first=True)]
    queries = [plan.query for plan in firsts]
    every = [plan for _, plan in example_plans(n, first=False)]
    others = [plan for plan in every if plan.sort is not None and plan.query not in queries]
    table = MadeUp(n)
    engine = LocalEngine(
        lambda _: table, table, cache_bytes=1 << 24, threads=threads, block_rows=block_rows
    )
    try:
        return list(
            zip(firsts + others, milliseconds(engine, firsts + others, ROUNDS), strict=True)
        )
    finally:
        engine.close()
