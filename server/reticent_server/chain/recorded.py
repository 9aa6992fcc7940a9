# SPDX-License-Identifier: Apache-2.0
"""Rows in use, held against the chain at every use: what was edited behind the program's back is
refused.

A query of rows asks with `repository.last_about` for the number of the last entry about each. The
entry says what the row's digest must be. What it says is kept in memory once its hash was
recomputed from the entry before, so that a look costs one digest. Who edits a row would have to
forge the entry as well, and the chain is broken from there on, or rewritten, which `ledger verify`,
and an anchor kept elsewhere, find.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, RowMapping, Table

from reticent_server.chain.acts import DIFFERS, recorded_digest
from reticent_server.chain.rows import Key, row_digest, subject_of
from reticent_server.errors import Unavailable
from reticent_server.events import EventLogger

log = EventLogger(__name__)

MOST_KNOWN = 10_000
"""Rows whose entries are kept in memory, about 200 bytes each; then it begins anew."""


class RecordedRows:
    """What the chain says of rows; one instance may serve many threads."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, str | None]] = {}

    def check(
        self,
        connection: Connection,
        table: Table,
        key: Key,
        row: Mapping[str, Any] | RowMapping,
        last: int | None,
    ) -> None:
        """Raises Unavailable unless the row is as entry `last`, the last about it, says."""
        subject = subject_of(table, key)
        if last is None or self._recorded(connection, subject, last) != _digest(table, row):
            log.error("row_differs", row=subject)
            raise Unavailable(DIFFERS)

    def _recorded(self, connection: Connection, subject: str, last: int) -> str:
        """The digest that the entry gives; "" where it gives none, or its hash is not its own."""
        known = self._known.get(subject)
        if known is None or known[0] != last:
            known = last, recorded_digest(connection, last)
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[subject] = known
        return known[1] or ""


def _digest(table: Table, row: Mapping[str, Any] | RowMapping) -> str | None:
    try:
        return row_digest(table, row)
    except (ValueError, TypeError, RecursionError):
        return None
