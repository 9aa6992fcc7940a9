"""Rows in use, held against the chain at every use: what was edited behind the program's back is refused.

A query of rows asks with `repository.last_about` for the number of the last entry about each. The entry
says what the row's digest must be. What it says is kept in memory once its hash was recomputed from the
entry before, so that a look costs one digest; who edits a row would have to rewrite the chain from
there on, which `ledger verify`, and an anchor kept elsewhere, find.
"""

from collections.abc import Mapping
from typing import Any

import structlog
from sqlalchemy import Connection, RowMapping, Table

from reticent_server.chain import repository
from reticent_server.chain.acts import DIGEST
from reticent_server.chain.entries import follows
from reticent_server.chain.rows import Key, row_digest, subject_of
from reticent_server.errors import Unavailable

log = structlog.get_logger(__name__)

DIFFERS = (
    "The server's records are not as its ledger says, so nothing is answered from them. Tell its "
    "curator: `reticent ledger verify` names what was changed."
)


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
        """The digest that the entry gives; "" where the entry is none about the row, or is broken."""
        known = self._known.get(subject)
        if known is None or known[0] != last:
            known = last, _said(connection, subject, last)
            self._known[subject] = known
        return known[1] or ""


def _said(connection: Connection, subject: str, last: int) -> str | None:
    entry, previous = repository.entry_and_hash_before(connection, last)
    if entry is None or entry.draft.subject != subject or not follows(previous, entry):
        return None
    return entry.draft.detail.get(DIGEST)


def _digest(table: Table, row: Mapping[str, Any] | RowMapping) -> str | None:
    try:
        return row_digest(table, row)
    except (ValueError, TypeError, RecursionError):
        return None
