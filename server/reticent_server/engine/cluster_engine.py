# SPDX-License-Identifier: Apache-2.0
"""Executes a plan with the passes over its rows on other processes, where these can read the
table."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from reticent_server.domain.private import Private
from reticent_server.domain.steps import SumStep
from reticent_server.engine.blocks import Table
from reticent_server.engine.local import EngineLedger, LocalEngine, Totals
from reticent_server.vault.ports import Reader


class Cluster(Protocol):
    """Other processes that add up the parts of a table."""

    def totals(self, parts: Sequence[Table], step: SumStep, block_rows: int) -> list[Any]:
        """The exact integer statistics over all parts, the same as in one process."""
        ...

    def close(self) -> None:
        """Leaves the other processes; no total can be asked for afterwards."""


class ClusterEngine(LocalEngine):
    """A LocalEngine whose sums come from a cluster where a table has parts that other processes can
    read.

    Noise is added here in either case: a cluster sees rows, and returns exact integer sums of them.
    """

    def __init__(
        self,
        cluster: Cluster,
        open_reader: Callable[[str], Reader],
        ledger: EngineLedger,
        *,
        cache_bytes: int,
        threads: int,
        block_rows: int,
    ) -> None:
        super().__init__(
            open_reader, ledger, cache_bytes=cache_bytes, threads=threads, block_rows=block_rows
        )
        self._cluster = cluster

    def totals(self, table: Table, step: SumStep) -> Totals:
        """As LocalEngine.totals, which takes the tables that have no parts."""
        parts = table.parts()
        if not parts:
            return super().totals(table, step)
        rows = table.rows_per_block(self.block_rows, step)
        return tuple(map(Private, self._cluster.totals(parts, step, rows)))

    def close(self) -> None:
        """Ends the threads and leaves the cluster."""
        super().close()
        self._cluster.close()
