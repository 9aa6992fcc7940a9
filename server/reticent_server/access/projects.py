# SPDX-License-Identifier: Apache-2.0
"""Projects: a purpose, members, an end, and the data sets that they may ask about together.

Their budgets are accounts of the ledger under the project's id. An analyst's own project has the
analyst's id, and its grants are the analyst's (access.service).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from secrets import token_hex

from sqlalchemy import Connection, Engine, RowMapping
from sqlalchemy.exc import IntegrityError

from reticent_server.access import project_rows, repository, tables
from reticent_server.chain.acts import Change, record, require_recorded
from reticent_server.chain.recorded import RecordedRows
from reticent_server.database import reading, writing
from reticent_server.domain.clock import Clock
from reticent_server.errors import Conflict, InvalidRequest, NotFound

OWN = "An analyst's own budgets."
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", re.ASCII)
LONGEST_REASON = 400
"""Characters, as the column has."""


@dataclass(frozen=True, slots=True)
class Project:
    """members: ids and names, by name. ends_on: the last day (UTC), ISO 8601; None: no end."""

    id: str
    name: str
    purpose: str
    members: tuple[tuple[str, str], ...]
    datasets: tuple[str, ...]
    ends_on: str | None
    is_live: bool


@dataclass(frozen=True, slots=True)
class Charter:
    """What a new project is to be. members: names of analysts."""

    name: str
    purpose: str
    members: tuple[str, ...]
    datasets: tuple[str, ...]
    ends_on: str | None


class Projects:
    """The projects that analysts share. Every change is recorded in the chain; `by` is who acts."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._recorded = RecordedRows()

    def seats(
        self, analyst_id: str, dataset: str | None = None
    ) -> tuple[tuple[str, str, str], ...]:
        """(project's id, its name, data set) of what an analyst may ask about in live projects.

        Raises Unavailable where a row is not as the chain says.
        """
        with reading(self._engine) as connection:
            seats = project_rows.seats(connection, analyst_id, self._today())
            wanted = [seat for seat in seats if dataset in (None, seat.dataset)]
            for part in (part for seat in wanted for part in seat.parts):
                self._recorded.check(connection, part.table, part.key, part.row, part.entry)
        return tuple((seat.project_id, seat.name, seat.dataset) for seat in wanted)

    def all(self) -> tuple[Project, ...]:
        """Every shared project, by name."""
        with reading(self._engine) as connection:
            rows = project_rows.shared_projects(connection)
            members = project_rows.all_members(connection)
            grants = project_rows.all_grants(connection)
        return tuple(self._project(row, members, grants) for row in rows)

    def of(self, analyst_id: str) -> tuple[Project, ...]:
        """The shared projects that an analyst is a member of, ended ones too."""
        return tuple(p for p in self.all() if analyst_id in dict(p.members))

    def named(self, name: str) -> Project:
        """Raises NotFound."""
        named = next((project for project in self.all() if project.name == name), None)
        if named is None:
            raise NotFound("There is no project of that name.")
        return named

    def grant(self, project_id: str, dataset: str, *, by: str) -> None:
        """Lets the members ask about a data set; granting twice is granting once."""
        try:
            with writing(self._engine) as connection:
                if project_rows.has_grant(connection, project_id, dataset):
                    return
                project_rows.insert_grant(connection, project_id, dataset, self._now())
                self._record(connection, [_granted(project_id, dataset)], by)
        except IntegrityError:
            pass  # granted by another at this moment

    def close(self, name: str, *, by: str) -> None:
        """Ends a project at once and for good; what was spent stays spent. Raises NotFound,
        Conflict."""
        with writing(self._engine) as connection:
            row = project_rows.shared_named(connection, name)
            if row is None:
                raise NotFound("There is no project of that name.")
            require_recorded(connection, tables.projects, (row["id"],))
            if not project_rows.close(connection, row["id"], self._now()):
                raise Conflict("That project is closed already.")
            self._record(connection, [Change("project.close", tables.projects, (row["id"],))], by)

    def remove_member(self, name: str, analyst: str, *, by: str) -> None:
        """Ends a member's part in a project at once; what was spent stays spent. Raises NotFound,
        or Conflict for the last one, without whom there is nobody left to ask."""
        with writing(self._engine) as connection:
            project_id = self._locked(connection, name)
            members = [
                m for m in project_rows.all_members(connection) if m["project_id"] == project_id
            ]
            member = next((m["analyst_id"] for m in members if m["name"] == analyst), None)
            if member is None:
                raise NotFound("That project has no such member.")
            if len(members) == 1:
                raise Conflict("That is the last member; close the project instead.")
            require_recorded(connection, tables.members, (project_id, member))
            project_rows.delete_member(connection, project_id, member)
            ended = Change("member.remove", tables.members, (project_id, member))
            self._record(connection, [ended], by)

    def remove_dataset(self, name: str, dataset: str, *, by: str) -> None:
        """Takes back a project's grant for a data set, until a budget is set again; what was spent
        stays spent. Raises NotFound."""
        with writing(self._engine) as connection:
            project_id = self._locked(connection, name)
            if not project_rows.has_grant(connection, project_id, dataset):
                raise NotFound("That project has no grant for that data set.")
            require_recorded(connection, tables.project_grants, (project_id, dataset))
            project_rows.delete_grant(connection, project_id, dataset)
            ended = Change("grant.revoke", tables.project_grants, (project_id, dataset))
            self._record(connection, [ended], by)

    def _locked(self, connection: Connection, name: str) -> str:
        row = project_rows.locked(connection, name)
        if row is None:
            raise NotFound("There is no project of that name.")
        return str(row["id"])

    def approve(
        self,
        request_id: str,
        charter: Charter,
        reason: str,
        *,
        by: str,
        budgets: Callable[[Connection, str], None],
    ) -> str:
        """Makes the project that a request asks for, all of it or nothing; its id.

        budgets: opens the accounts of the project's id, in the same transaction, after the rows.
        Raises NotFound, Conflict (decided before; a name that is taken), InvalidRequest.
        """
        charter = _checked(charter, self._today())
        decision = {"status": "approved", "decided_by": by, "reason": reason.strip()}
        project_id = "pr_" + token_hex(8)
        try:
            with writing(self._engine) as connection:
                changes = self._make(connection, project_id, charter)
                self._decide(connection, request_id, {**decision, "project_id": project_id})
                budgets(connection, project_id)
                told = {"project": project_id, "reason": decision["reason"]}
                act = Change("request.approve", tables.requests, (request_id,), told)
                self._record(connection, [*changes, act], by)
        except IntegrityError:
            raise Conflict("An analyst or a project of that name exists already.") from None
        return project_id

    def refuse(self, request_id: str, reason: str, *, by: str) -> None:
        """Raises NotFound, Conflict (decided before), InvalidRequest (no reason)."""
        text = reason.strip()
        if not 0 < len(text) <= LONGEST_REASON or not text.isprintable():
            raise InvalidRequest(f"Say why, in 1 to {LONGEST_REASON} characters.")
        with writing(self._engine) as connection:
            decision = {"status": "refused", "decided_by": by, "reason": text}
            self._decide(connection, request_id, decision)
            act = Change("request.refuse", tables.requests, (request_id,), {"reason": text})
            self._record(connection, [act], by)

    def _decide(self, connection: Connection, request_id: str, decision: dict[str, str]) -> None:
        if project_rows.request(connection, request_id) is None:
            raise NotFound("There is no such request.")
        require_recorded(connection, tables.requests, (request_id,))
        values = decision | {"decided_at": self._now()}
        if not project_rows.decide(connection, request_id, values):
            raise Conflict("Somebody has decided this request already.")

    def _make(self, connection: Connection, project_id: str, charter: Charter) -> list[Change]:
        if repository.principal_named(connection, charter.name) is not None:
            raise Conflict("An analyst or a project of that name exists already.")
        at = self._now()
        row = {"id": project_id, "name": charter.name, "purpose": charter.purpose}
        row_of = {**row, "ends_on": charter.ends_on, "created_at": at}
        project_rows.insert_project(connection, row_of)
        changes = [Change("project.add", tables.projects, (project_id,), {"name": charter.name})]
        for name in charter.members:
            member = _analyst_id(connection, name)
            project_rows.insert_member(connection, project_id, member, at)
            changes.append(Change("member.add", tables.members, (project_id, member)))
        for dataset in charter.datasets:
            project_rows.insert_grant(connection, project_id, dataset, at)
            changes.append(_granted(project_id, dataset))
        return changes

    def _project(
        self, row: RowMapping, members: Sequence[RowMapping], grants: Sequence[RowMapping]
    ) -> Project:
        is_over = row["ends_on"] is not None and row["ends_on"] < self._today()
        return Project(
            row["id"],
            row["name"],
            row["purpose"],
            tuple((m["analyst_id"], m["name"]) for m in members if m["project_id"] == row["id"]),
            tuple(g["dataset"] for g in grants if g["project_id"] == row["id"]),
            row["ends_on"],
            is_live=row["closed_at"] is None and not is_over,
        )

    def _record(self, connection: Connection, changes: Sequence[Change], by: str) -> None:
        record(connection, changes, by=by, at=self._now())

    def _now(self) -> str:
        return self._clock.now().isoformat(timespec="microseconds")

    def _today(self) -> str:
        return self._clock.now().date().isoformat()


def own_project(connection: Connection, analyst_id: str, at: str) -> list[Change]:
    """Makes an analyst's project of one; what is to be recorded."""
    values = {"id": analyst_id, "name": analyst_id, "purpose": OWN, "created_at": at}
    project_rows.insert_project(connection, values)
    project_rows.insert_member(connection, analyst_id, analyst_id, at)
    return [
        Change("project.add", tables.projects, (analyst_id,)),
        Change("member.add", tables.members, (analyst_id, analyst_id)),
    ]


def _analyst_id(connection: Connection, name: str) -> str:
    principal = repository.principal_named(connection, name)
    if principal is None or principal["role"] != "analyst" or principal["revoked_at"] is not None:
        raise NotFound(f"There is no analyst called {name}.")
    require_recorded(connection, tables.principals, (principal["id"],))
    return str(principal["id"])


def _checked(charter: Charter, today: str) -> Charter:
    """Raises InvalidRequest for what makes no project."""
    if not NAME.fullmatch(charter.name):
        raise InvalidRequest(
            "A project's name is 1 to 64 letters, digits, '.', '_', '@' or '-', and starts with a "
            "letter or digit."
        )
    if not charter.datasets or len(set(charter.datasets)) < len(charter.datasets):
        raise InvalidRequest("A project has a budget for one data set or more, each once.")
    if not charter.members or len(set(charter.members)) < len(charter.members):
        raise InvalidRequest("A project has one member or more, each once.")
    if charter.ends_on is not None and not _is_day(charter.ends_on, today):
        raise InvalidRequest("A project's last day is today or later, as 2030-12-31.")
    return charter


def _is_day(text: str, today: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text and text >= today
    except ValueError:
        return False


def _granted(project_id: str, dataset: str) -> Change:
    return Change("grant.add", tables.project_grants, (project_id, dataset))
