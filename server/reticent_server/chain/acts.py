# SPDX-License-Identifier: Apache-2.0
"""Recording administrative acts: what was done to a row of access or of the catalogue, by whom,
when.

    with writing(engine) as connection:
        require_recorded(connection, grants, (analyst_id, dataset))  # 1. rows that are there
        connection.execute(delete(grants).where(…))                  # 2. change the rows
        record(                                                      # 3. last: record the change
            connection,
            [Change("grant.revoke", grants, (analyst_id, dataset))],
            by="cli:root",
            at=now,
        )

The entry holds the digest of the row as the act leaves it, so `ledger verify` finds a row that was
changed, added or deleted by anything that did not record it. A new table joins by two things: it is
declared with `info=chained("noun")` (chain.tables), and every transaction that changes one of its
rows ends with `record`, once, naming each row that it has changed. Three rules keep that right:

- A transaction that changes or deletes a row asks `require_recorded` first. Else it would record
  what somebody has edited in the row before, and the edit would be found no more.

- `record` is the transaction's last change. It takes the chain's head, which is the last lock of
  every writer (ledger.repository); who changed rows after it could wait for somebody who waits for
  the head.
- A migration may add columns to a chained table that are null in the rows that are there. One that
  changes rows records what they are now, with the action "adopt".

What changes too often to be recorded (the windows of a rate limit, when a session was last seen)
has no place in a chained table. `detail` is for the reader of the audit trail; it is kept for ever
and exported: ids, names of data sets, policies and reasons, never a key's digest, never a person's
name.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Table

from reticent_server.chain import repository
from reticent_server.chain.entries import Draft, Entry, follows
from reticent_server.chain.rows import Key, as_stored, row_digest, stored_digest, subject_of
from reticent_server.errors import Unavailable
from reticent_server.events import EventLogger

DIGEST = "row_sha256"
ADOPT = "adopt"
"""The action for rows that were there before the chain spoke of them."""

DIFFERS = (
    "The server's records are not as its ledger says, so nothing is done with them. Tell its "
    "curator: `reticent ledger verify` names what was changed."
)

LOOKS = 3
"""A row that others delete and add between two questions differs once, and not again and again."""

_ACTION = re.compile(r"[a-z]{1,20}(\.[a-z_]{1,19})?", re.ASCII)
_LONGEST_ACTOR = 80
_ENTRY = "last entry"

log = EventLogger(__name__)


@dataclass(frozen=True, slots=True)
class Change:
    """One row as the transaction leaves it. action: what was done, as "key.add" or "policy.set".

    key: the values of the table's primary key. A row that is there no longer was deleted.
    """

    action: str
    table: Table
    key: Key
    detail: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _ACTION.fullmatch(self.action):
            raise ValueError("an act has a name like key.add")


def require_recorded(connection: Connection, table: Table, *keys: Key) -> None:
    """Raises Unavailable unless each row is as the last entry about it says, or both say that there
    is none. To be called before rows are changed, in the same transaction."""
    for key in keys:
        if not any(_is_recorded(connection, table, key) for _ in range(LOOKS)):
            subject = subject_of(table, key)
            log.error("row_differs", row=subject)
            raise Unavailable(DIFFERS)


def _is_recorded(connection: Connection, table: Table, key: Key) -> bool:
    columns = table.primary_key.columns
    entry = repository.last_about(table, *columns).label(_ENTRY)
    given = zip(columns, key, strict=True)
    query = as_stored(table).add_columns(entry).where(*(c == value for c, value in given))
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        last = repository.last_with(connection, subject_of(table, key))
        return last is None or _says_deleted(connection, last)
    return recorded_digest(connection, row[_ENTRY]) == row_digest(table, row)


def recorded_digest(connection: Connection, seq: int | None) -> str | None:
    """The digest that an entry gives of its row; None where it gives none, or its hash is not its
    own."""
    entry = None if seq is None else _intact(connection, seq)
    digest: str | None = None if entry is None else entry.draft.detail.get(DIGEST)
    return digest


def _says_deleted(connection: Connection, seq: int) -> bool:
    entry = _intact(connection, seq)
    return entry is not None and entry.draft.detail.get(DIGEST) is None


def _intact(connection: Connection, seq: int) -> Entry | None:
    entry, previous = repository.entry_and_hash_before(connection, seq)
    return entry if entry is not None and follows(previous, entry) else None


def record(connection: Connection, changes: Sequence[Change], *, by: str, at: str) -> None:
    """Appends one entry a change to the chain, in the caller's transaction, after its other
    changes.

    by: who acts, as "cli:NAME", "console:NAME" or an analyst's id. at: ISO 8601 in UTC.
    """
    if changes:
        repository.append(connection, [_draft(connection, c, by, at) for c in changes])


def _draft(connection: Connection, change: Change, by: str, at: str) -> Draft:
    detail = dict(change.detail) | {DIGEST: stored_digest(connection, change.table, change.key)}
    subject = subject_of(change.table, change.key)
    return Draft(change.action, None, by[:_LONGEST_ACTOR], at, detail=detail, subject=subject)
