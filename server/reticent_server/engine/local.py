# SPDX-License-Identifier: Apache-2.0
"""Executes a plan on this machine: threads over blocks, exact integer sums, one release a part.

The only reader of the vault in a serving process. Every value goes out through mechanisms.release;
the estimator is sent released values only, and cannot be sent more than its plan has paid for.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from time import monotonic
from typing import Any, Protocol

from threadpoolctl import threadpool_limits

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Plan, Release
from reticent_server.domain.private import Private
from reticent_server.domain.reservation import Reservation
from reticent_server.domain.results import result_json
from reticent_server.domain.steps import ColumnStep, Released, Step, SumStep
from reticent_server.engine import persons
from reticent_server.engine.blocks import Table
from reticent_server.engine.cache import ColumnCache
from reticent_server.engine.columns import gather
from reticent_server.engine.workers import Workers
from reticent_server.errors import Unavailable
from reticent_server.mechanisms import (
    column_registry,
    gaussian_cost,
    lone_count,
    registry,
    secret_rows,
)
from reticent_server.mechanisms.disjoint_groups import GroupsMap
from reticent_server.mechanisms.gaussian_cost import GaussianCost
from reticent_server.vault.ports import Reader

Totals = tuple[Private[Any], ...]


class EngineLedger(Protocol):
    """What the engine asks of the ledger."""

    def confirm(self, reservation: Reservation) -> bool:
        """Whether the reservation is committed, unsettled and still leased."""
        ...


@cache
def _one_thread_a_library() -> None:
    """Threads are ours, over blocks; the linear algebra's would fight them. Once: looking for
    libraries takes time.
    """
    threadpool_limits(1)


def _of_persons(result: dict[str, Any] | None, facts: DatasetFacts) -> dict[str, Any] | None:
    """The result with the public n: of persons, where a kind's is that of places for their rows."""
    many = facts.schema.unit.many_rows and result is not None and "n" in result
    return result | {"n": facts.n} if many and result is not None else result


class LocalEngine:
    """Block map-reduce with `threads` threads over blocks of at most `block_rows` records."""

    def __init__(
        self,
        open_reader: Callable[[str], Reader],
        ledger: EngineLedger,
        *,
        cache_bytes: int,
        threads: int,
        block_rows: int,
    ) -> None:
        self._open_reader = open_reader
        self._ledger = ledger
        self._cache = ColumnCache(cache_bytes)
        self.block_rows = block_rows
        self._threads = threads
        self._workers = Workers(threads, helped=True)
        _one_thread_a_library()

    def holds(self, plan: Plan) -> bool:
        """Whether the plan's columns are in memory: earlier requests and the sizes of columns
        decide it, no cell.
        """
        return plan.view is None and self._cache.has(plan.facts.version_id, plan.planned.columns)

    def execute(self, plan: Plan, reservation: Reservation) -> Release:
        """The release that `reservation` has paid for. Unavailable where the vault cannot be read.

        Any other failure is a release of status "failed", with nothing about its cause: also where
        the plan is not what was paid for (the policy was changed, a profile was published since).
        """
        if not self._ledger.confirm(reservation):
            raise Unavailable("The reservation is no longer valid; send the request again.")
        if not plan.paid_by(reservation):
            return Release(status="failed", result=None)
        key = secret_rows.secret_key()
        try:
            result = self._drive(plan, key)
            return Release(status="no_reply" if result is None else "reply", result=result)
        except Unavailable:
            raise
        except Exception:  # noqa: BLE001 - its text may depend on a private cell
            return Release(status="failed", result=None)
        finally:
            self._cache.forget(key.hex())
            self._workers.tidy()

    def _drive(self, plan: Plan, key: bytes) -> dict[str, Any] | None:
        table = self._table(plan, key.hex())
        spent, gaussian = PrivacyCost(0, 0, 0), GaussianCost()
        recipe = plan.planned.run()
        step = next(recipe)
        while True:
            if plan.lone:
                lone_count.check(step, spent.rho, plan.cost)
            spent += _cost(step, plan)
            if not spent.within(plan.cost):
                raise RuntimeError("a step costs more than the plan has paid for")
            if plan.gaussian_limit is not None:
                gaussian += gaussian_cost.cost(step)
                gaussian.check(plan.gaussian_limit)
                if plan.cost.gaussian:
                    gaussian.check_charged(plan.cost.gaussian)
            released = self._released(table, step, key)
            try:
                step = recipe.send(released)
            except StopIteration as stop:
                return _storable(_of_persons(result_json(stop.value), plan.facts))

    def _released(self, table: Table, step: Step, key: bytes) -> tuple[Released, ...]:
        if isinstance(step, ColumnStep):
            columns = gather(step, table.n, table.blocks(self._cache, self.block_rows))
            each = self._workers.each
            parts = zip(step.parts, columns, strict=True)
            return tuple(column_registry.release(p, c, each) for p, c in parts)
        rows = None
        if step.subset is not None:
            subset = secret_rows.chosen(step.subset, key)
            step, rows = replace(step, subset=subset), subset.count(table.n)
        totals = self.totals(table, step)
        released = (registry.release(p, t) for p, t in zip(step.parts, totals, strict=True))
        return tuple(replace(each, rows=rows) for each in released)

    def _table(self, plan: Plan, release: str) -> Table:
        reader = self._open_reader(plan.facts.version_id)
        version_id = plan.facts.version_id
        if plan.view is not None:
            reader = persons.view_reader(reader, plan.view, plan.facts.n)
            version_id = f"{version_id}/{plan.view.digest}"
        if reader.n != plan.facts.slots:
            raise Unavailable("The data set cannot be read now.")
        due = monotonic() + plan.deadline_ms / 1e3
        names = plan.planned.columns
        return Table(reader, version_id, plan.facts.schema, names, due=due, release=release)

    def totals(self, table: Table, step: SumStep) -> Totals:
        """The exact integer statistics of one pass: the same for any block size and any threads."""
        rows = table.rows_per_block(self.block_rows, step)
        groups = step.map_fn if isinstance(step.map_fn, GroupsMap) else None
        pieces = table.pieces(self._cache, rows, step.subset, self._threads, groups)
        counted = table.rows(step.subset)
        totals = self._workers.totals(step, pieces, counted, rows, table.due)
        return tuple(map(Private, totals))

    def close(self) -> None:
        """Ends the threads."""
        self._workers.close()


def _storable(result: dict[str, Any] | None) -> dict[str, Any] | None:
    """The result, refused here (ValueError) if it could not be stored: not finite, or not JSON."""
    json.dumps(result, allow_nan=False)
    return result


def _cost(step: Step, plan: Plan) -> PrivacyCost:
    """The step's cost; its noise must be made for the data set's rows per unit."""
    m = plan.facts.schema.unit.max_rows
    if isinstance(step, ColumnStep):
        right = all(part.unit_rows == m for part in step.parts)
    else:
        right = all(part.unit_rows * part.person_rows == m for part in step.parts)
    if not right:
        raise RuntimeError("a step's noise is not made for the data set's unit")
    if isinstance(step, ColumnStep):
        return sum(map(column_registry.cost, step.parts), start=PrivacyCost(0, 0, 0))
    return PrivacyCost(0, 0, registry.rho(step))
