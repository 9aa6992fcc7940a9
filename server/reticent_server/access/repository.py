# SPDX-License-Identifier: Apache-2.0
"""The SQL of principals, keys, grants and sessions; every function runs in the caller's
transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, delete, insert, or_, select, update

from reticent_server.access.tables import grants, keys, principals, sessions
from reticent_server.chain.repository import last_about

# Built once: every request asks these, and building a statement takes longer than running it.
_LIVE_KEY = (
    select(
        *(column.label(f"key.{column.name}") for column in keys.columns),
        *(column.label(f"holder.{column.name}") for column in principals.columns),
        last_about(keys, keys.c.id).label("key_entry"),
        last_about(principals, principals.c.id).label("holder_entry"),
    )
    .join(principals, keys.c.principal_id == principals.c.id)
    .where(keys.c.id == bindparam("key_id"), keys.c.revoked_at.is_(None))
    .where(or_(keys.c.expires_ms.is_(None), keys.c.expires_ms > bindparam("now_ms")))
    .where(principals.c.revoked_at.is_(None))
)
_LIVE_SESSION = select(sessions, last_about(sessions, sessions.c.id).label("entry")).where(
    sessions.c.id == bindparam("session_id"), sessions.c.ended_at.is_(None)
)
_LIVE_GRANT = (
    select(grants, last_about(grants, grants.c.analyst_id, grants.c.dataset).label("entry"))
    .join(principals, grants.c.analyst_id == principals.c.id)
    .where(grants.c.analyst_id == bindparam("analyst_id"), grants.c.dataset == bindparam("about"))
    .where(principals.c.revoked_at.is_(None))
)


@dataclass(frozen=True, slots=True)
class LiveKey:
    """A key and its holder, as they are stored, with the numbers of the last entries about them."""

    key: Mapping[str, Any]
    holder: Mapping[str, Any]
    key_entry: int | None
    holder_entry: int | None


def insert_principal(connection: Connection, values: dict[str, Any]) -> None:
    """Adds a row of `principals`: an analyst or one of the staff. values: by column."""
    connection.execute(insert(principals).values(values))


def principal_named(connection: Connection, name: str, *, lock: bool = False) -> RowMapping | None:
    """The principal of that name. lock: until commit nobody else changes it or its keys.

    (SQLite has no FOR UPDATE; there the transaction itself is the only writer.)
    """
    query = select(principals).where(principals.c.name == name)
    return connection.execute(query.with_for_update() if lock else query).mappings().one_or_none()


def principal_with(connection: Connection, principal_id: str) -> RowMapping | None:
    """The row of a principal's id, revoked or not; None where there is none."""
    query = select(principals).where(principals.c.id == principal_id)
    return connection.execute(query).mappings().one_or_none()


def principals_in_role(connection: Connection, role: str) -> Sequence[RowMapping]:
    """All principals of a role, revoked ones too, by name."""
    query = select(principals).where(principals.c.role == role).order_by(principals.c.name)
    return connection.execute(query).mappings().all()


def mark_revoked(connection: Connection, principal_id: str, at: str) -> bool:
    """Whether it was not revoked before."""
    query = (
        update(principals)
        .where(principals.c.id == principal_id, principals.c.revoked_at.is_(None))
        .values(revoked_at=at)
    )
    return connection.execute(query).rowcount == 1


def set_roles(connection: Connection, principal_id: str, roles: str) -> None:
    """Replaces what one of the staff may do. roles: as the column stores them."""
    query = update(principals).where(principals.c.id == principal_id).values(roles=roles)
    connection.execute(query)


def insert_key(connection: Connection, values: dict[str, Any]) -> None:
    """Adds a row of `keys`, which holds a key's hash and never the key. values: by column."""
    connection.execute(insert(keys).values(values))


def store_again(
    connection: Connection, key_id: str, digest: str, values: Mapping[str, Any]
) -> bool:
    """Replaces a live key's digest, where it is still `digest`; whether it was."""
    query = update(keys).where(
        keys.c.id == key_id, keys.c.digest == digest, keys.c.revoked_at.is_(None)
    )
    return connection.execute(query.values(values)).rowcount == 1


def live_keys(connection: Connection, now_ms: int) -> Sequence[RowMapping]:
    """(principal_id, id) of keys neither revoked nor expired, newest first."""
    query = (
        select(keys.c.principal_id, keys.c.id)
        .where(keys.c.revoked_at.is_(None))
        .where(or_(keys.c.expires_ms.is_(None), keys.c.expires_ms > now_ms))
        .order_by(keys.c.created_at.desc(), keys.c.id)
    )
    return connection.execute(query).mappings().all()


def unrevoked_keys(connection: Connection, principal_id: str) -> Sequence[str]:
    """The ids of a principal's keys that were not revoked, expired ones too."""
    query = select(keys.c.id).where(
        keys.c.principal_id == principal_id, keys.c.revoked_at.is_(None)
    )
    return connection.execute(query).scalars().all()


def revoke_keys(
    connection: Connection, principal_id: str, keep: str | None, at: str
) -> Sequence[str]:
    """Revokes a principal's keys, all but `keep`; the ids of those that it has revoked."""
    query = update(keys).where(keys.c.principal_id == principal_id, keys.c.revoked_at.is_(None))
    if keep is not None:
        query = query.where(keys.c.id != keep)
    return connection.execute(query.values(revoked_at=at).returning(keys.c.id)).scalars().all()


def live_key(connection: Connection, key_id: str, now_ms: int) -> LiveKey | None:
    """A key that is live and whose holder is not revoked."""
    given = {"key_id": key_id, "now_ms": now_ms}
    row = connection.execute(_LIVE_KEY, given).mappings().one_or_none()
    if row is None:
        return None
    key = {column.name: row[f"key.{column.name}"] for column in keys.columns}
    holder = {column.name: row[f"holder.{column.name}"] for column in principals.columns}
    return LiveKey(key, holder, row["key_entry"], row["holder_entry"])


def insert_grant(connection: Connection, values: dict[str, Any]) -> None:
    """Lets an analyst ask about a data set. values: by column."""
    connection.execute(insert(grants).values(values))


def delete_grant(connection: Connection, analyst_id: str, dataset: str) -> bool:
    """Whether there was one."""
    query = delete(grants).where(grants.c.analyst_id == analyst_id, grants.c.dataset == dataset)
    return connection.execute(query).rowcount == 1


def live_grant(connection: Connection, analyst_id: str, dataset: str) -> RowMapping | None:
    """The grant, with the number of the last `entry` about it, of an analyst who is not revoked."""
    given = {"analyst_id": analyst_id, "about": dataset}
    return connection.execute(_LIVE_GRANT, given).mappings().one_or_none()


def grants_of(connection: Connection, analyst_id: str) -> list[str]:
    """The names of the data sets that an analyst may ask about, sorted."""
    query = (
        select(grants.c.dataset).where(grants.c.analyst_id == analyst_id).order_by(grants.c.dataset)
    )
    return list(connection.execute(query).scalars())


def insert_session(connection: Connection, values: dict[str, Any]) -> None:
    """Adds a row of `sessions`: a visit of the pages. values: by column."""
    connection.execute(insert(sessions).values(values))


def live_session(connection: Connection, session_id: str) -> RowMapping | None:
    """A session that was not ended, with the number of the last `entry` about it."""
    given = {"session_id": session_id}
    return connection.execute(_LIVE_SESSION, given).mappings().one_or_none()


def end_session(connection: Connection, session_id: str, at: str) -> bool:
    """Whether it was not ended before."""
    query = update(sessions).where(sessions.c.id == session_id, sessions.c.ended_at.is_(None))
    return connection.execute(query.values(ended_at=at)).rowcount == 1


def sessions_of(connection: Connection, principal_id: str) -> Sequence[str]:
    """The ids of a principal's sessions that were not ended."""
    query = select(sessions.c.id).where(
        sessions.c.principal_id == principal_id, sessions.c.ended_at.is_(None)
    )
    return connection.execute(query).scalars().all()
