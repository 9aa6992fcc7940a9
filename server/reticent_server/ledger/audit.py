# SPDX-License-Identifier: Apache-2.0
"""Verification: from the entries alone, what every account, release and row must be. Pure
functions."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reticent_server.chain.acts import DIGEST
from reticent_server.chain.entries import GENESIS, Entry, digest, follows
from reticent_server.chain.repository import LOST, ROLLBACK
from reticent_server.domain.amounts import ZERO, Amounts
from reticent_server.ledger.model import Balance, ReleaseRecord
from reticent_server.ledger.queueing import CANCELLED
from reticent_server.ledger.reservations import QUEUED, TURN, release_digest
from reticent_server.ledger.rules import charge


@dataclass(slots=True)
class _Paid:
    """What the entries say of one release: debits by account, digests, and how it was settled.
    begins, ends: its turn as it was charged and as it was settled; None: of an earlier version of
    this software."""

    debits: dict[str, Amounts] = field(default_factory=dict)
    digests: set[str] = field(default_factory=set)
    settled: tuple[str, str] | None = None
    begins: list[Any] | None = None
    ends: list[Any] | None = None


@dataclass(slots=True)
class _Books:
    """The state that entries lead to."""

    accounts: dict[str, Balance] = field(default_factory=dict)
    releases: dict[str, _Paid] = field(default_factory=dict)
    rows: dict[str, str | None] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def verify(
    *,
    entries: Iterable[Entry],
    chain_head: tuple[int, str],
    accounts: Iterable[Balance],
    releases: Iterable[ReleaseRecord],
    rows: Iterable[tuple[str, str | None]],
    anchored: Collection[str],
) -> list[str]:
    """What is wrong, in sentences.

    1. Recompute the chain. 2. Replay the entries. 3. Compare accounts. 4. Compare releases.
    5. Compare the rows of access and catalogue: (subject, digest) as in chain.rows.
    What a broken chain leads to means nothing, so 3 to 5 are left out then.
    """
    books = _Books()
    broken = _chain(entries, chain_head, anchored, books)
    if broken:
        return [*broken, "Accounts, releases and rows were not checked against a broken chain."]
    stored = {account.account: account for account in accounts}
    compared = [*_accounts(books, stored), *_releases(books, releases), *_rows(books, rows)]
    return [*books.problems, *compared]


def _chain(
    entries: Iterable[Entry],
    chain_head: tuple[int, str],
    anchored: Collection[str],
    books: _Books,
) -> list[str]:
    """Problems of the chain; replays its entries into the books while there are none."""
    problems, previous, last = [], GENESIS, 0
    missing = set(anchored) - {GENESIS}
    for entry in entries:
        if type(entry.seq) is not int:  # SQLite stores anything in any column
            problems.append("An entry has no number.")
            continue
        if entry.seq != last + 1:
            problems.append(f"Entries {last + 1} to {entry.seq - 1} are missing.")
        if not follows(previous, entry):
            problems.append(f"Entry {entry.seq} does not match its hash.")
        if not problems and not _replayed(books, entry):
            problems.append(f"Entry {entry.seq} makes no sense.")
        previous, last = entry.hash, entry.seq
        missing.discard(entry.hash)
        if entry.draft.action == ROLLBACK:
            missing.difference_update(entry.draft.detail[LOST])
    if chain_head != (last, previous):
        problems.append("The last entry is not the one that the head of the chain names.")
    if missing:
        problems.append(
            "An anchored head is not in this chain: an older copy was restored, or entries "
            "rewritten."
        )
    return problems


def _replayed(books: _Books, entry: Entry) -> bool:
    try:
        _replay(books, entry)
    except (KeyError, TypeError):
        return False  # well hashed, yet not what this ledger writes: the whole chain was rewritten
    return True


def _replay(books: _Books, entry: Entry) -> None:
    draft = entry.draft
    if draft.account is None:
        books.rows[str(draft.subject)] = draft.detail[DIGEST]
    else:
        _change(books, entry, draft.account)


def _change(books: _Books, entry: Entry, account: str) -> None:
    """Replays an entry about an account."""
    draft = entry.draft
    if draft.action == "open":
        if account in books.accounts:
            books.problems.append(f"Entry {entry.seq} opens an account twice.")
        books.accounts[account] = _opened(account, draft.detail)
    present = books.accounts.get(account)
    if present is None:
        books.problems.append(f"Entry {entry.seq} changes an account that is not open.")
        return
    if draft.action == "cap":
        present = _with_cap(present, draft.detail)
    present = replace(present, spent=present.spent + draft.change)
    if not (ZERO.within(present.spent) and present.spent.within(present.cap)):
        books.problems.append(f"Entry {entry.seq} leaves {account} outside its cap.")
    books.accounts[account] = present
    if draft.release_id is not None:
        _pay(books, entry, account, draft.release_id)


def _opened(account: str, detail: Mapping[str, Any]) -> Balance:
    return Balance(
        account=account,
        analyst_id=detail["analyst_id"],
        dataset=detail["dataset"],
        population=detail["population"],
        rule=detail["rule"],
        epsilon=detail["epsilon"],
        delta=detail["delta"],
        cap=Amounts(detail["primary_cap"], detail["secondary_cap"]),
        spent=ZERO,
    )


def _with_cap(account: Balance, detail: Mapping[str, Any]) -> Balance:
    cap = Amounts(detail["primary_cap"], detail["secondary_cap"])
    return replace(account, epsilon=detail["epsilon"], delta=detail["delta"], cap=cap)


def _pay(books: _Books, entry: Entry, account: str, release_id: str) -> None:
    draft, paid = entry.draft, books.releases.setdefault(release_id, _Paid())
    if draft.action == "settle":
        if paid.settled is not None:
            books.problems.append(f"Entry {entry.seq} settles a release twice.")
        paid.settled = (draft.detail["status"], draft.detail["body_sha256"])
        paid.ends = draft.detail.get(TURN)
        return
    paid.debits[account] = paid.debits.get(account, ZERO) + draft.change
    if draft.action == "debit":
        paid.digests.add(draft.detail["release_sha256"])
        paid.begins = draft.detail.get(TURN)


def _accounts(books: _Books, stored: Mapping[str, Balance]) -> list[str]:
    problems = []
    for account in sorted(books.accounts.keys() | stored.keys(), key=str):
        expected, present = books.accounts.get(account), stored.get(account)
        if present is None:
            problems.append(f"The account {account} is missing.")
        elif expected is None:
            problems.append(f"The account {account} was never opened.")
        elif expected != present:
            problems.append(f"The account {account} is not what its entries lead to.")
    return problems


def _releases(books: _Books, releases: Iterable[ReleaseRecord]) -> list[str]:
    problems, seen = [], set()
    for record in releases:
        seen.add(record.id)
        problem = _checked(books, record)
        if problem is not None:
            problems.append(f"The release {record.id} {problem}.")
    missing = sorted(books.releases.keys() - seen)
    return problems + [f"The release {release_id} is missing." for release_id in missing]


def _checked(books: _Books, record: ReleaseRecord) -> str | None:
    try:
        return _release(books, record)
    except (TypeError, AttributeError):
        return "holds what this ledger never writes"


def _release(books: _Books, record: ReleaseRecord) -> str | None:
    """What is wrong with a release, as the rest of a sentence."""
    paid = books.releases.get(record.id)
    if paid is None:
        return "was never paid for"
    if paid.digests != {release_digest(record)} or digest(record.request) != record.request_sha256:
        return "is not the one that was paid for"
    if paid.debits != _due(books, record):
        return "was not debited as it should be"
    stored = None if record.body is None else (record.status, digest(record.body))
    if stored != paid.settled or (stored is None and record.status != "pending"):
        return "is not settled as its entry says"
    if not (_pending_on_time(paid, record) if stored is None else _settled_on_time(paid, record)):
        return "has not the times or the lease that its entries say"
    return None


def _pending_on_time(paid: _Paid, record: ReleaseRecord) -> bool:
    """Of one that waits for its turn, or was never to wait, all is as it was charged; one that was
    to wait and does not any more has begun at a time that its settlement will say."""
    if paid.begins is None:
        return True
    start, duration, waited = paid.begins
    waits = record.lease.startswith(QUEUED)
    is_start = record.start_ms == start or (waited and not waits)
    return is_start and record.duration_ms == duration and waits <= waited


def _settled_on_time(paid: _Paid, record: ReleaseRecord) -> bool:
    """Times are as they were when it was settled, there is no lease, and a cancelled one had never
    begun."""
    if paid.ends is None:
        return True
    start, duration, _ = paid.ends
    of_row = [record.start_ms, record.duration_ms, record.lease, record.lease_until_ms]
    charged = paid.begins or [start, duration, False]
    never_begun = record.status != CANCELLED or charged[0] == start
    return of_row == [start, duration, "", 0] and charged[1] == duration and never_begun


def _due(books: _Books, record: ReleaseRecord) -> dict[str, Amounts]:
    """Debits by account, less reversals, as the rules want them: nothing for a cancelled
    release."""
    present = [books.accounts[a] for a in record.accounts if a in books.accounts]
    cancelled = record.status == CANCELLED
    return {a.account: ZERO if cancelled else charge(record.cost, a.rule) for a in present}


def _rows(books: _Books, stored: Iterable[tuple[str, str | None]]) -> list[str]:
    problems, seen = [], set()
    for subject, present in stored:
        seen.add(subject)
        if subject not in books.rows:
            problems.append(f"The row {subject} was never recorded.")
        elif present is None or present != books.rows[subject]:
            problems.append(f"The row {subject} is not what its last entry says.")
    kept = {subject for subject, expected in books.rows.items() if expected is not None}
    return problems + [f"The row {subject} is missing." for subject in sorted(kept - seen)]
