# SPDX-License-Identifier: Apache-2.0
"""All SQL of the chain; every function runs in the caller's transaction."""

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    RowMapping,
    ScalarSelect,
    Select,
    String,
    Table,
    and_,
    bindparam,
    cast,
    func,
    insert,
    literal,
    or_,
    select,
    true,
    update,
)

from reticent_server.chain.anchors import Anchor
from reticent_server.chain.entries import GENESIS, Draft, Entry, canonical_json, entry_row, link
from reticent_server.chain.tables import entries, head, noun_of
from reticent_server.domain.amounts import Amounts
from reticent_server.errors import Unavailable

ROLLBACK = "ledger.rollback"
"""The action of an entry by which a curator accepts an older copy of the ledger."""

LOST = "lost_heads"
"""In the detail of such an entry: the anchored heads that the copy does not have."""

_PAGE = 1000

NO_HEAD = (-1, "")
_HEADLESS = (
    "The ledger has lost the row that names its last entry, so nothing is recorded. Tell its "
    "curator: `reticent ledger verify` says so, too, and a backup has it."
)

# Built once, as every charge runs them, and building a statement takes longer than running it.
_ADVANCE = (
    update(head)
    .values(seq=head.c.seq + bindparam("steps", type_=BigInteger))
    .returning(head.c.seq, head.c.hash)
)
_INSERT_ENTRIES = insert(entries)
_SET_HASH = update(head).values(hash=bindparam("last"))


def append(connection: Connection, drafts: Sequence[Draft]) -> None:
    """Appends entries to the chain; until commit, no other transaction can."""
    advanced = connection.execute(_ADVANCE, {"steps": len(drafts)}).one_or_none()
    if advanced is None:
        raise Unavailable(_HEADLESS)
    last, previous = advanced
    rows = []
    for seq, draft in enumerate(drafts, start=last - len(drafts) + 1):
        entry = link(previous, seq, draft)
        previous = entry.hash
        rows.append(
            entry_row(seq, draft)
            | {"subject": draft.subject, "detail": canonical_json(draft.detail), "hash": previous}
        )
    connection.execute(_INSERT_ENTRIES, rows)
    connection.execute(_SET_HASH, {"last": previous})


def chain_head(connection: Connection) -> tuple[int, str]:
    """(seq, hash) of the last entry, as the head's row says; NO_HEAD where there is no such row."""
    row = connection.execute(select(head.c.seq, head.c.hash)).one_or_none()
    return NO_HEAD if row is None else (row.seq, row.hash)


def all_entries(connection: Connection) -> Iterator[Entry]:
    """The chain, in order."""
    yield from map(_entry, pages(connection, select(entries).order_by(entries.c.seq)))


def entry_and_hash_before(connection: Connection, seq: int) -> tuple[Entry | None, str]:
    """Entry `seq`, and the hash of the one before it (GENESIS before the first)."""
    near = select(entries).where(entries.c.seq.in_([seq - 1, seq]))
    by_seq = {entry.seq: entry for entry in map(_entry, connection.execute(near).mappings())}
    before = by_seq.get(seq - 1)
    return by_seq.get(seq), GENESIS if before is None else before.hash


def is_in(connection: Connection, anchor: Anchor) -> bool:
    """Whether the chain has the entry that was anchored, or says that it was lost and that
    everything which may have been spent since counts as spent (ROLLBACK)."""
    stored = connection.scalar(select(entries.c.hash).where(entries.c.seq == anchor.seq))
    if anchor.hash == (GENESIS if anchor.seq == 0 else stored):
        return True
    accepted = select(entries.c.detail).where(entries.c.action == ROLLBACK)
    return any(anchor.hash in json.loads(text)[LOST] for text in connection.scalars(accepted))


def happened(connection: Connection, action: str) -> bool:
    """Whether an entry of the chain says that this was done."""
    found = select(entries.c.seq).where(entries.c.action == action).limit(1)
    return connection.scalar(found) is not None


def last_with(connection: Connection, subject: str) -> int | None:
    """The number of the last entry about a row, by its subject."""
    query = select(func.max(entries.c.seq)).where(entries.c.subject == subject)
    seq: int | None = connection.scalar(query)
    return seq


def last_about(table: Table, *key: ColumnElement[Any]) -> ScalarSelect[int]:
    """For a query of the table's rows: the number of the last entry about each."""
    subject: ColumnElement[str] = literal(noun_of(table))
    for part in key:
        subject = subject + ":" + cast(part, String)
    last = select(func.max(entries.c.seq)).where(entries.c.subject == subject)
    return last.correlate(table).scalar_subquery()


def last_entries(
    connection: Connection, account_id: str | None, limit: int, actions: Sequence[str] = ()
) -> list[Entry]:
    """The last entries, newest first, of one account or of all. actions: of these alone; none: of
    any."""
    query = select(entries).order_by(entries.c.seq.desc()).limit(limit)
    if account_id is not None:
        query = query.where(entries.c.account == account_id)
    if actions:
        query = query.where(entries.c.action.in_(actions))
    return [_entry(row) for row in connection.execute(query).mappings()]


def entries_with(
    connection: Connection, account_id: str, action: str, actor: str, detail: Mapping[str, Any]
) -> list[Entry]:
    """Every entry of an account for exactly that, oldest first."""
    query = select(entries).where(
        entries.c.account == account_id,
        entries.c.action == action,
        entries.c.actor == actor,
        entries.c.detail == canonical_json(detail),
    )
    return [_entry(row) for row in connection.execute(query.order_by(entries.c.seq)).mappings()]


class TrailPart(StrEnum):
    """Which entries: each release once, as the cap was charged for it; budgets, as they were set
    and credited; administrative acts."""

    ALL = ""
    RELEASES = "releases"
    BUDGETS = "budgets"
    ACTS = "acts"


_OF_A_CAP = "population:"
"""How the account of a cap over all analysts begins (ledger.model.population_account)."""

_PARTS: Mapping[TrailPart, ColumnElement[bool]] = {
    TrailPart.ALL: true(),
    TrailPart.RELEASES: and_(
        entries.c.action == "debit",
        entries.c.release_id.is_not(None),
        entries.c.account.startswith(_OF_A_CAP, autoescape=True),
    ),
    TrailPart.BUDGETS: and_(entries.c.account.is_not(None), entries.c.release_id.is_(None)),
    TrailPart.ACTS: entries.c.account.is_(None),
}


def entries_about(
    connection: Connection,
    words: Sequence[str],
    *,
    before: int | None,
    limit: int,
    part: TrailPart = TrailPart.ALL,
) -> list[Entry]:
    """The last entries of a part before number `before` that name one of `words` anywhere, newest
    first.

    Every word is taken literally, in any case of its ASCII letters. words empty: all entries.
    """
    query = select(entries).where(_PARTS[part]).order_by(entries.c.seq.desc()).limit(limit)
    if before is not None:
        query = query.where(entries.c.seq < before)
    if words:
        query = query.where(or_(*(_named(word) for word in words)))
    return [_entry(row) for row in connection.execute(query).mappings()]


def _named(word: str) -> ColumnElement[bool]:
    c = entries.c
    plain = (c.action, c.account, c.subject, c.actor, c.release_id, c.at)
    escaped = canonical_json(word)[1:-1]  # as a detail spells it
    return or_(
        c.detail.icontains(escaped, autoescape=True),
        *(column.icontains(word, autoescape=True) for column in plain),
    )


def pages(connection: Connection, query: Select[Any]) -> Iterator[RowMapping]:
    """The rows of a query, a page at a time."""
    with connection.execute(query, execution_options={"yield_per": _PAGE}) as result:
        yield from result.mappings()


def _entry(row: RowMapping) -> Entry:
    draft = Draft(
        action=row["action"],
        account=row["account"],
        actor=row["actor"],
        at=row["at"],
        release_id=row["release_id"],
        change=Amounts(row["primary_change"], row["secondary_change"]),
        detail=_detail(row["detail"]),
        subject=row["subject"],
    )
    return Entry(row["seq"], draft, row["hash"])


def _detail(text: str) -> Mapping[str, Any]:
    """A detail that is no JSON object is kept as it is: it breaks the hash, and verify says so."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {"unreadable": text}
    return value if isinstance(value, dict) else {"unreadable": text}
