"""Recording administrative acts: what was done to a row of access or of the catalogue, by whom, when.

    with writing(engine) as connection:
        connection.execute(insert(grants).values(…))                     # 1. change the rows
        record(                                                          # 2. last: say so
            connection, [Change("grant.add", grants, (analyst_id, dataset))], by="cli:root", at=now
        )

The entry holds the digest of the row as the act leaves it, so `ledger verify` finds a row that was
changed, added or deleted by anything that did not record it. A new table joins by two things: it is
declared with `info=chained("noun")` (chain.tables), and every transaction that changes one of its rows ends
with `record`, once, naming each row that it has changed. Two rules keep that right:

- `record` is the transaction's last change. It takes the chain's head, which is the last lock of every
  writer (ledger.repository); who changed rows after it could wait for somebody who waits for the head.
- A migration may add columns to a chained table that are null in the rows that are there. One that
  changes rows records what they are now, with the action "adopt".

What changes too often to be recorded (the windows of a rate limit, when a session was last seen) has
no place in a chained table. `detail` is for the reader of the audit trail; it is kept for ever and
exported: ids, names of data sets, policies and reasons, never a key's digest, never a person's name.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Table

from reticent_server.chain import repository
from reticent_server.chain.entries import Draft
from reticent_server.chain.rows import Key, stored_digest, subject_of

DIGEST = "row_sha256"
ADOPT = "adopt"
"""The action for rows that were there before the chain spoke of them."""

_ACTION = re.compile(r"[a-z]{1,20}(\.[a-z_]{1,19})?", re.ASCII)
_LONGEST_ACTOR = 80


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


def record(connection: Connection, changes: Sequence[Change], *, by: str, at: str) -> None:
    """Appends one entry a change to the chain, in the caller's transaction, after its other changes.

    by: who acts, as "cli:NAME", "console:NAME" or an analyst's id. at: ISO 8601 in UTC.
    """
    if changes:
        repository.append(connection, [_draft(connection, c, by, at) for c in changes])


def _draft(connection: Connection, change: Change, by: str, at: str) -> Draft:
    detail = dict(change.detail) | {DIGEST: stored_digest(connection, change.table, change.key)}
    subject = subject_of(change.table, change.key)
    return Draft(change.action, None, by[:_LONGEST_ACTOR], at, detail=detail, subject=subject)
