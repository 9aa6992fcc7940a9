# SPDX-License-Identifier: Apache-2.0
"""The SQL of projects and requests; every function runs in the caller's transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Connection,
    RowMapping,
    Table,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from reticent_server.access.tables import (
    members,
    principals,
    project_grants,
    projects,
    requests,
)
from reticent_server.chain.repository import last_about

_PARTS: Sequence[Table] = (projects, members, project_grants)

# Built once: requests that are charged to a project ask this.
_LIVE = (
    select(
        *(c.label(f"{t.name}.{c.name}") for t in _PARTS for c in t.columns),
        *(last_about(t, *t.primary_key.columns).label(f"{t.name}.entry") for t in _PARTS),
    )
    .join(members, members.c.project_id == projects.c.id)
    .join(project_grants, project_grants.c.project_id == projects.c.id)
    .join(principals, principals.c.id == members.c.analyst_id)
    .where(members.c.analyst_id == bindparam("analyst_id"), principals.c.revoked_at.is_(None))
    .where(projects.c.closed_at.is_(None))
    .where(or_(projects.c.ends_on.is_(None), projects.c.ends_on >= bindparam("today")))
    .order_by(projects.c.name, project_grants.c.dataset)
)


@dataclass(frozen=True, slots=True)
class Part:
    """A row that says that somebody may ask, with the number of the last entry about it."""

    table: Table
    key: tuple[str, ...]
    row: Mapping[str, Any]
    entry: int | None


@dataclass(frozen=True, slots=True)
class Seat:
    """An analyst in a live project that may ask about a data set, and the rows that say so."""

    project_id: str
    name: str
    dataset: str
    parts: tuple[Part, ...]


def seats(connection: Connection, analyst_id: str, today: str) -> list[Seat]:
    """What an analyst who is not revoked may ask about in shared projects, by name and data set."""
    given = {"analyst_id": analyst_id, "today": today}
    return [_seat(row) for row in connection.execute(_LIVE, given).mappings()]


def _seat(row: RowMapping) -> Seat:
    parts = tuple(_part(table, row) for table in _PARTS)
    project, _, grant = parts
    return Seat(project.row["id"], project.row["name"], grant.row["dataset"], parts)


def _part(table: Table, row: RowMapping) -> Part:
    own = {column.name: row[f"{table.name}.{column.name}"] for column in table.columns}
    key = tuple(own[column.name] for column in table.primary_key.columns)
    return Part(table, key, own, row[f"{table.name}.entry"])


def insert_project(connection: Connection, values: Mapping[str, Any]) -> None:
    """Adds a row of `projects`. values: by column."""
    connection.execute(insert(projects).values(values))


def insert_member(connection: Connection, project_id: str, analyst_id: str, at: str) -> None:
    """Adds an analyst to a project. at: the time, as the ledger writes it."""
    values = {"project_id": project_id, "analyst_id": analyst_id, "added_at": at}
    connection.execute(insert(members).values(values))


def insert_grant(connection: Connection, project_id: str, dataset: str, at: str) -> None:
    """Lets a project ask about a data set. at: the time, as the ledger writes it."""
    values = {"project_id": project_id, "dataset": dataset, "granted_at": at}
    connection.execute(insert(project_grants).values(values))


def shared_projects(connection: Connection) -> Sequence[RowMapping]:
    """Those that are no analyst's own, by name."""
    query = select(projects).where(projects.c.id != projects.c.name).order_by(projects.c.name)
    return connection.execute(query).mappings().all()


def shared_named(connection: Connection, name: str) -> RowMapping | None:
    """The shared project of a name, open or closed; None where there is none."""
    query = select(projects).where(projects.c.name == name, projects.c.id != projects.c.name)
    return connection.execute(query).mappings().one_or_none()


def all_members(connection: Connection) -> Sequence[RowMapping]:
    """(project_id, analyst_id, name), by name."""
    query = (
        select(members.c.project_id, members.c.analyst_id, principals.c.name)
        .join(principals, principals.c.id == members.c.analyst_id)
        .order_by(principals.c.name)
    )
    return connection.execute(query).mappings().all()


def all_grants(connection: Connection) -> Sequence[RowMapping]:
    """Which data sets each project may ask about, by data set."""
    query = select(project_grants).order_by(project_grants.c.dataset)
    return connection.execute(query).mappings().all()


def has_grant(connection: Connection, project_id: str, dataset: str) -> bool:
    """Whether a project may ask about a data set."""
    query = select(project_grants.c.dataset).where(
        project_grants.c.project_id == project_id, project_grants.c.dataset == dataset
    )
    return connection.scalar(query) is not None


def delete_member(connection: Connection, project_id: str, analyst_id: str) -> None:
    """Takes an analyst out of a project."""
    own = (members.c.project_id == project_id, members.c.analyst_id == analyst_id)
    connection.execute(delete(members).where(*own))


def delete_grant(connection: Connection, project_id: str, dataset: str) -> None:
    """Ends a project's access to a data set."""
    own = (project_grants.c.project_id == project_id, project_grants.c.dataset == dataset)
    connection.execute(delete(project_grants).where(*own))


def locked(connection: Connection, name: str) -> RowMapping | None:
    """The shared project of a name; until commit nobody else locks it."""
    query = select(projects).where(projects.c.name == name, projects.c.id != projects.c.name)
    return connection.execute(query.with_for_update()).mappings().one_or_none()


def close(connection: Connection, project_id: str, at: str) -> bool:
    """Whether it was open."""
    query = update(projects).where(projects.c.id == project_id, projects.c.closed_at.is_(None))
    return connection.execute(query.values(closed_at=at)).rowcount == 1


def insert_request(connection: Connection, values: Mapping[str, Any]) -> None:
    """Adds a row of `requests`. values: by column."""
    connection.execute(insert(requests).values(values))


def pending_of(connection: Connection, analyst_id: str) -> int:
    """How many requests of an analyst nobody has decided."""
    query = (
        select(func.count())
        .select_from(requests)
        .where(requests.c.analyst_id == analyst_id, requests.c.status == "pending")
    )
    return int(connection.execute(query).scalar_one())


def request(connection: Connection, request_id: str) -> RowMapping | None:
    """The row of one request for budget, None for an unknown id."""
    query = select(requests).where(requests.c.id == request_id)
    return connection.execute(query).mappings().one_or_none()


def requests_by(connection: Connection, analyst_id: str | None, limit: int) -> Sequence[RowMapping]:
    """The last requests of an analyst (None: of all), those that are pending first."""
    query = select(requests).order_by(
        requests.c.status != "pending", requests.c.made_at.desc(), requests.c.id
    )
    if analyst_id is not None:
        query = query.where(requests.c.analyst_id == analyst_id)
    return connection.execute(query.limit(limit)).mappings().all()


def decide(connection: Connection, request_id: str, values: Mapping[str, Any]) -> bool:
    """Whether nobody had decided before."""
    query = update(requests).where(requests.c.id == request_id, requests.c.status == "pending")
    return connection.execute(query.values(values)).rowcount == 1
