# SPDX-License-Identifier: Apache-2.0
"""All SQL of accounts and releases; every function runs in the caller's transaction.

Lock order, the same everywhere: a release's row, the population's account, the analyst's account,
the head of the chain. A release's row is locked first only by its own insertion or by conditional
updates of that row, so no two transactions wait for each other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import (
    Connection,
    Executable,
    RowMapping,
    bindparam,
    func,
    insert,
    select,
    update,
)

from reticent_server.chain.repository import pages
from reticent_server.domain.amounts import Amounts
from reticent_server.ledger.model import Balance, ReleaseRecord
from reticent_server.ledger.rules import BudgetLimits
from reticent_server.ledger.tables import accounts, releases

# Built once, as every charge and every GET /v1/budget runs them, and building a statement takes
# longer than running it.
_ACCOUNT = select(accounts).where(accounts.c.id == bindparam("wanted"))
_ACCOUNTS_OF = (
    select(accounts)
    .where(accounts.c.analyst_id == bindparam("analyst_id"))
    .order_by(accounts.c.dataset)
)
# The condition is spent ≤ cap − amount, which cannot overflow 64 bits as spent + amount could.
_SPEND = (
    update(accounts)
    .where(accounts.c.id == bindparam("wanted"))
    .where(accounts.c.primary_spent <= accounts.c.primary_cap - bindparam("primary"))
    .where(accounts.c.secondary_spent <= accounts.c.secondary_cap - bindparam("secondary"))
    .values(
        primary_spent=accounts.c.primary_spent + bindparam("primary"),
        secondary_spent=accounts.c.secondary_spent + bindparam("secondary"),
    )
)
_RELEASE = select(releases).where(releases.c.id == bindparam("wanted"))
_RELEASE_BY_KEY = select(releases).where(
    releases.c.owner == bindparam("owner"), releases.c.idempotency_key == bindparam("key")
)
_INSERT_RELEASE = insert(releases)
_NO_LEASE = {"lease": "", "lease_until_ms": 0}
"""Of a release that is settled: nobody computes it any more."""

_SETTLE = (
    update(releases)
    .where(releases.c.id == bindparam("wanted"), releases.c.status == "pending")
    .values(status=bindparam("outcome"), body=bindparam("stored"), **_NO_LEASE)
    .returning(releases)
)


def account(connection: Connection, account_id: str) -> Balance | None:
    """The account of an id, None where it is not open."""
    row = connection.execute(_ACCOUNT, {"wanted": account_id}).mappings().one_or_none()
    return None if row is None else _balance(row)


def all_accounts(connection: Connection) -> list[Balance]:
    """Every account, by id."""
    query = select(accounts).order_by(accounts.c.id)
    return [_balance(row) for row in connection.execute(query).mappings()]


def accounts_of(connection: Connection, analyst_id: str) -> list[Balance]:
    """All accounts of an analyst or of a shared project."""
    rows = connection.execute(_ACCOUNTS_OF, {"analyst_id": analyst_id}).mappings()
    return [_balance(row) for row in rows]


def lock_accounts(connection: Connection, account_ids: Sequence[str] | None) -> list[Balance]:
    """Accounts, locked until the transaction ends, those of populations first. account_ids: None:
    all."""
    query = select(accounts).order_by(accounts.c.analyst_id.is_not(None), accounts.c.id)
    if account_ids is not None:
        query = query.where(accounts.c.id.in_(account_ids))
    return [_balance(row) for row in connection.execute(query.with_for_update()).mappings()]


def insert_account(connection: Connection, opened: Balance) -> None:
    """Opens an account. opened: with what it may spend, and nothing spent."""
    connection.execute(
        insert(accounts).values(
            id=opened.account,
            analyst_id=opened.analyst_id,
            dataset=opened.dataset,
            population=opened.population,
            rule=opened.rule,
            epsilon=opened.epsilon,
            delta=opened.delta,
            primary_cap=opened.cap.primary,
            secondary_cap=opened.cap.secondary,
            primary_spent=opened.spent.primary,
            secondary_spent=opened.spent.secondary,
        )
    )


def change_cap(connection: Connection, account_id: str, budget: BudgetLimits) -> bool:
    """Sets caps, unless more is spent already."""
    query = (
        update(accounts)
        .where(accounts.c.id == account_id)
        .where(accounts.c.primary_spent <= budget.cap.primary)
        .where(accounts.c.secondary_spent <= budget.cap.secondary)
        .values(
            epsilon=budget.epsilon,
            delta=budget.delta,
            primary_cap=budget.cap.primary,
            secondary_cap=budget.cap.secondary,
        )
    )
    return connection.execute(query).rowcount == 1


def spend(connection: Connection, account_id: str, amount: Amounts) -> bool:
    """Adds to both amounts spent, unless one would exceed its cap."""
    given = {"wanted": account_id, "primary": amount.primary, "secondary": amount.secondary}
    return connection.execute(_SPEND, given).rowcount == 1


def give_back(connection: Connection, account_id: str, amount: Amounts) -> bool:
    """Subtracts from both amounts spent, unless less is spent."""
    query = (
        update(accounts)
        .where(accounts.c.id == account_id)
        .where(accounts.c.primary_spent >= amount.primary)
        .where(accounts.c.secondary_spent >= amount.secondary)
        .values(
            primary_spent=accounts.c.primary_spent - amount.primary,
            secondary_spent=accounts.c.secondary_spent - amount.secondary,
        )
    )
    return connection.execute(query).rowcount == 1


def insert_release(connection: Connection, record: ReleaseRecord) -> None:
    """Raises IntegrityError where the owner has used the idempotency key."""
    connection.execute(_INSERT_RELEASE, asdict(record))


def release(connection: Connection, release_id: str) -> ReleaseRecord | None:
    """The record of a release, whatever its state; None for an unknown id."""
    return _one_release(connection, _RELEASE, {"wanted": release_id})


def release_by_key(connection: Connection, owner: str, key: str) -> ReleaseRecord | None:
    """The record that an owner's idempotency key stands for; None where the key is new."""
    return _one_release(connection, _RELEASE_BY_KEY, {"owner": owner, "key": key})


def releases_of(connection: Connection, owner: str, limit: int, offset: int) -> list[ReleaseRecord]:
    """An owner's releases, newest first."""
    query = (
        select(releases)
        .where(releases.c.owner == owner)
        .order_by(releases.c.created_at.desc(), releases.c.id)
        .limit(limit)
        .offset(offset)
    )
    return [_release(row) for row in connection.execute(query).mappings()]


def abandoned(connection: Connection, now_ms: int, limit: int) -> list[ReleaseRecord]:
    """Pending releases whose lease has expired, oldest first."""
    query = (
        select(releases)
        .where(releases.c.status == "pending", releases.c.lease_until_ms <= now_ms)
        .order_by(releases.c.created_at, releases.c.id)
        .limit(limit)
    )
    return [_release(row) for row in connection.execute(query).mappings()]


def take_lease(
    connection: Connection,
    record: ReleaseRecord,
    *,
    lease: str,
    until_ms: int,
    start_ms: int | None = None,
) -> bool:
    """Replaces the lease that `record` shows, unless another has done so or has settled.

    start_ms: when its computation begins; None leaves what is stored.
    """
    query = (
        update(releases)
        .where(releases.c.id == record.id, releases.c.status == "pending")
        .where(releases.c.lease == record.lease)
        .values(lease=lease, lease_until_ms=until_ms)
    )
    if start_ms is not None:
        query = query.values(start_ms=start_ms)
    return connection.execute(query).rowcount == 1


def keep_leases(connection: Connection, held: Sequence[tuple[str, str]], until_ms: int) -> None:
    """Prolongs leases, as (release's id, lease), of those that hold them still."""
    query = (
        update(releases)
        .where(releases.c.id == bindparam("held_id"), releases.c.status == "pending")
        .where(releases.c.lease == bindparam("held_lease"))
        .values(lease_until_ms=until_ms)
    )
    connection.execute(query, [{"held_id": i, "held_lease": lease} for i, lease in held])


def cancel(connection: Connection, record: ReleaseRecord, body: bytes) -> bool:
    """Stores the body of a cancelled release, unless its lease is another one by now."""
    query = (
        update(releases)
        .where(releases.c.id == record.id, releases.c.status == "pending")
        .where(releases.c.lease == record.lease)
        .values(status="cancelled", body=body, **_NO_LEASE)
    )
    return connection.execute(query).rowcount == 1


def planned_ms(connection: Connection, owner: str) -> int:
    """The planned time of an owner's releases that are not settled, in all."""
    query = (
        select(func.coalesce(func.sum(releases.c.duration_ms), 0))
        .select_from(releases)
        .where(releases.c.owner == owner, releases.c.status == "pending")
    )
    return int(connection.execute(query).scalar_one())


def waiting(connection: Connection) -> int:
    """How many releases are charged and not settled, of all owners."""
    query = select(func.count()).select_from(releases).where(releases.c.status == "pending")
    return int(connection.execute(query).scalar_one())


def held_leases(connection: Connection, now_ms: int) -> list[str]:
    """The leases of pending releases that have not expired."""
    query = select(releases.c.lease).where(
        releases.c.status == "pending", releases.c.lease_until_ms > now_ms
    )
    return list(connection.execute(query).scalars())


def end_leases(connection: Connection, leases: Sequence[str]) -> None:
    """Lets leases expire now, where they are held still."""
    connection.execute(
        update(releases)
        .where(releases.c.status == "pending", releases.c.lease.in_(leases))
        .values(lease_until_ms=0)
    )


def settle(
    connection: Connection, release_id: str, status: str, body: bytes
) -> ReleaseRecord | None:
    """Stores the body, and gives the release with it; None where one is stored, or no release
    is."""
    given = {"wanted": release_id, "outcome": status, "stored": body}
    return _one_release(connection, _SETTLE, given)


def all_releases(connection: Connection) -> Iterator[ReleaseRecord]:
    """Every record in the order of ids, read page by page."""
    yield from map(_release, pages(connection, select(releases).order_by(releases.c.id)))


def _one_release(
    connection: Connection, query: Executable, given: Mapping[str, Any]
) -> ReleaseRecord | None:
    row = connection.execute(query, given).mappings().one_or_none()
    return None if row is None else _release(row)


def _balance(row: RowMapping) -> Balance:
    return Balance(
        account=row["id"],
        analyst_id=row["analyst_id"],
        dataset=row["dataset"],
        population=row["population"],
        rule=row["rule"],
        epsilon=row["epsilon"],
        delta=row["delta"],
        cap=Amounts(row["primary_cap"], row["secondary_cap"]),
        spent=Amounts(row["primary_spent"], row["secondary_spent"]),
    )


def _release(row: RowMapping) -> ReleaseRecord:
    return ReleaseRecord(**row)
