"""The SQL of principals, keys and grants; every function runs in the caller's transaction."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, delete, insert, or_, select, update

from reticent_server.access.tables import grants, keys, principals

# Built once: every request asks this, and building a statement takes longer than running it.
_LIVE_KEY = (
    select(keys.c.digest, principals.c.id, principals.c.name, principals.c.role)
    .join(principals, keys.c.principal_id == principals.c.id)
    .where(keys.c.id == bindparam("key_id"), keys.c.revoked_at.is_(None))
    .where(or_(keys.c.expires_ms.is_(None), keys.c.expires_ms > bindparam("now_ms")))
    .where(principals.c.revoked_at.is_(None))
)


def insert_principal(connection: Connection, values: dict[str, Any]) -> None:
    connection.execute(insert(principals).values(values))


def principal_named(connection: Connection, name: str, *, lock: bool = False) -> RowMapping | None:
    """The principal of that name. lock: until commit nobody else changes it or its keys.

    (SQLite has no FOR UPDATE; there the transaction itself is the only writer.)
    """
    query = select(principals).where(principals.c.name == name)
    return connection.execute(query.with_for_update() if lock else query).mappings().one_or_none()


def principal_with(connection: Connection, principal_id: str) -> RowMapping | None:
    query = select(principals).where(principals.c.id == principal_id)
    return connection.execute(query).mappings().one_or_none()


def principals_in_role(connection: Connection, role: str) -> Sequence[RowMapping]:
    query = select(principals).where(principals.c.role == role).order_by(principals.c.name)
    return connection.execute(query).mappings().all()


def mark_revoked(connection: Connection, principal_id: str, at: str) -> None:
    connection.execute(
        update(principals)
        .where(principals.c.id == principal_id, principals.c.revoked_at.is_(None))
        .values(revoked_at=at)
    )


def insert_key(connection: Connection, values: dict[str, Any]) -> None:
    connection.execute(insert(keys).values(values))


def live_keys(connection: Connection, now_ms: int) -> Sequence[RowMapping]:
    """(principal_id, id) of keys neither revoked nor expired, newest first."""
    query = (
        select(keys.c.principal_id, keys.c.id)
        .where(keys.c.revoked_at.is_(None))
        .where(or_(keys.c.expires_ms.is_(None), keys.c.expires_ms > now_ms))
        .order_by(keys.c.created_at.desc(), keys.c.id)
    )
    return connection.execute(query).mappings().all()


def revoke_keys(connection: Connection, principal_id: str, keep: str | None, at: str) -> None:
    """Revokes a principal's keys, all but `keep`."""
    query = update(keys).where(keys.c.principal_id == principal_id, keys.c.revoked_at.is_(None))
    if keep is not None:
        query = query.where(keys.c.id != keep)
    connection.execute(query.values(revoked_at=at))


def live_key(connection: Connection, key_id: str, now_ms: int) -> RowMapping | None:
    """(digest, id, name, role) of a key that is live and whose holder is not revoked."""
    given = {"key_id": key_id, "now_ms": now_ms}
    return connection.execute(_LIVE_KEY, given).mappings().one_or_none()


def insert_grant(connection: Connection, values: dict[str, Any]) -> None:
    connection.execute(insert(grants).values(values))


def delete_grant(connection: Connection, analyst_id: str, dataset: str) -> None:
    connection.execute(
        delete(grants).where(grants.c.analyst_id == analyst_id, grants.c.dataset == dataset)
    )


def live_grant(connection: Connection, analyst_id: str, dataset: str) -> bool:
    """Whether there is a grant, and its analyst is not revoked."""
    query = (
        select(grants.c.dataset)
        .join(principals, grants.c.analyst_id == principals.c.id)
        .where(grants.c.analyst_id == analyst_id, grants.c.dataset == dataset)
        .where(principals.c.revoked_at.is_(None))
    )
    return connection.execute(query).first() is not None


def grants_of(connection: Connection, analyst_id: str) -> list[str]:
    query = (
        select(grants.c.dataset).where(grants.c.analyst_id == analyst_id).order_by(grants.c.dataset)
    )
    return list(connection.execute(query).scalars())
