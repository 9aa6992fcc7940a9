# SPDX-License-Identifier: Apache-2.0
"""How fast this machine is: the examples of every kind, on rows that are made up, by an engine of
its own."""

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from statistics import fmean, median
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
from reticent_server.pipeline.pace_file import KeptPace, PaceFile
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

CHECKED = 6
"""Kinds whose first example makes the short check of a pace that was kept: under a second on the
machine whose pace is 1."""

ANOTHER_MACHINE = 3.0
"""Times as long, or as short, as the check took: what was kept is then not this machine's."""

log = EventLogger(__name__)


class MadeUp:
    """A reader of the example table, and the ledger of an engine that charges nobody."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._rows = example.rows(n)

    def batches(self, columns: Sequence[str]) -> Iterator[Private[pa.RecordBatch]]:
        """The requested columns of all rows, in one batch."""
        arrays = {name: pa.array(self._rows[name]) for name in columns}
        yield Private(pa.RecordBatch.from_pydict(arrays))

    def confirm(self, reservation: Reservation) -> bool:
        """Whether the reservation has an id: there is no ledger that would know it."""
        return bool(reservation.id)


def example_plans(n: int, *, first: bool) -> list[tuple[str, Plan]]:
    """Kind and plan of every example (first: of each kind's first) that can be planned for n
    records without a profile."""
    return list(_example_plans(n, 1 if first else None))


def _example_plans(n: int, of_each: int | None) -> Iterator[tuple[str, Plan]]:
    facts = DatasetFacts("example", "example", 1, "example", n, example.SCHEMA, None)
    return (
        (kind.name, planning.plan(facts, question, Privacy(1.0, 1e-6)))
        for kind in KINDS
        if kind.for_analysts
        for question in kind.examples[:of_each]
    )


def milliseconds(engine: LocalEngine, plans: Sequence[Plan], rounds: int) -> list[float]:
    """What each takes: the middle of some rounds of all of them. What else the machine does adds to
    a round now and then, and what it does all the time adds to most, which a deadline has to allow
    for.
    """
    took = [[0.0] * rounds for _ in plans]
    for number in range(rounds):
        for times, plan in zip(took, plans, strict=True):
            reservation = Reservation("example", "example", plan.cost, "")
            started = time.perf_counter()
            engine.execute(plan, reservation)
            times[number] = 1e3 * (time.perf_counter() - started)
    return [median(times) for times in took]


def speed_of(plans: Sequence[Plan], took: Sequence[float]) -> float:
    """How long the machine takes, relative to the one whose pace is 1; took: milliseconds of each
    plan."""
    ratios = [ms / (plan.expected_ms or ms) for plan, ms in zip(plans, took, strict=True)]
    return fmean(ratios) / USUAL


def keep_pace(services: Services, processes: int) -> None:
    """Measures the machine beside what the server does; until it is done, deadlines are by the pace
    that was kept (pipeline.pace_file), or where none was, the plans' own.

    processes: that serve on it.
    """
    if services.settings.reply_grid_ms:
        Thread(target=_measure, args=(services, processes), name="pace", daemon=True).start()


def _measure(services: Services, processes: int) -> None:
    threads, block_rows = services.settings.threads, services.settings.block_rows
    try:
        file = PaceFile(services.settings)
        kept = checked(file.read(), block_rows)
        if kept is not None:
            services.pace.measured(kept.speed, processes, kept.shares)
            log.info("pace_kept", speed=round(kept.speed, 2), sorts=len(kept.shares))
        speed, shares = measured(threads, block_rows)
        services.pace.measured(speed, processes, shares)
        log.info("pace_measured", speed=round(speed, 2), sorts=len(shares))
        file.write(KeptPace(speed, shares, check_milliseconds(block_rows)))
    except Exception as error:  # noqa: BLE001 - deadlines stay as they are
        log.warning("pace_not_measured", error=type(error).__name__)


def checked(kept: KeptPace | None, block_rows: int) -> KeptPace | None:
    """A pace that was kept, as slow as the machine is now where that is slower; None where it is
    not this machine's."""
    if kept is None:
        return None
    times = check_milliseconds(block_rows) / kept.check_ms
    if not 1 / ANOTHER_MACHINE <= times <= ANOTHER_MACHINE:
        return None
    return kept.slower(max(times, 1.0))


def check_milliseconds(block_rows: int) -> float:
    """What the examples of the short check take together, in one thread."""
    table = MadeUp(FEW)
    engine = LocalEngine(
        lambda _: table, table, cache_bytes=1 << 24, threads=1, block_rows=block_rows
    )
    try:
        plans = [plan for _, plan in islice(_example_plans(FEW, 1), CHECKED)]
        return sum(milliseconds(engine, plans, ROUNDS))
    finally:
        engine.close()


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
