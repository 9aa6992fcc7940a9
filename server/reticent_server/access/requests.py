# SPDX-License-Identifier: Apache-2.0
"""Requests for projects: what analysts wish to have and why, and what became of it.

A request is taken as it is sent: whether its data sets and members exist is looked at by whoever
decides, so that asking does not reveal what exists.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from sqlalchemy import Engine, RowMapping

from reticent_server.access import project_rows, tables
from reticent_server.chain.acts import Change, record
from reticent_server.chain.entries import canonical_json
from reticent_server.database import reading, writing
from reticent_server.domain.clock import Clock
from reticent_server.errors import Conflict, NotFound

MOST_PENDING = 10
"""Of one analyst: entries are kept for ever, and somebody reads each."""

SHOWN = 200


@dataclass(frozen=True, slots=True)
class ProjectRequest:
    """document: name, purpose, members, ends_on, budgets, plan; as sent (web.project_bodies)."""

    id: str
    analyst_id: str
    made_at: str
    document: Mapping[str, Any]
    status: str
    decided_by: str | None
    reason: str | None


class Requests:
    """What was asked for, by whom, and how it was decided (access.projects decides)."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock

    def make(self, analyst_id: str, document: Mapping[str, Any]) -> ProjectRequest:
        """Files a request. Raises Conflict where too many are pending."""
        at = self._clock.now().isoformat(timespec="microseconds")
        values = {
            "id": "rq_" + token_hex(8),
            "analyst_id": analyst_id,
            "made_at": at,
            "document": canonical_json(document),
            "status": "pending",
        }
        made = Change("request.add", tables.requests, (values["id"],))
        with writing(self._engine) as connection:
            if project_rows.pending_of(connection, analyst_id) >= MOST_PENDING:
                raise Conflict(f"{MOST_PENDING} of your requests wait for a decision already.")
            project_rows.insert_request(connection, values)
            record(connection, [made], by=analyst_id, at=at)
        return self.one(values["id"])

    def one(self, request_id: str) -> ProjectRequest:
        """Anybody's. Raises NotFound."""
        with reading(self._engine) as connection:
            row = project_rows.request(connection, request_id) if request_id.isprintable() else None
        if row is None:
            raise NotFound("There is no such request.")
        return _request(row)

    def of(self, analyst_id: str) -> tuple[ProjectRequest, ...]:
        """An analyst's own, those that are pending first, then the newest."""
        return self._last(analyst_id)

    def all(self) -> tuple[ProjectRequest, ...]:
        """Everybody's last ones, those that are pending first."""
        return self._last(None)

    def _last(self, analyst_id: str | None) -> tuple[ProjectRequest, ...]:
        with reading(self._engine) as connection:
            rows = project_rows.requests_by(connection, analyst_id, SHOWN)
        return tuple(map(_request, rows))


def _request(row: RowMapping) -> ProjectRequest:
    names = ("id", "analyst_id", "made_at", "status", "decided_by", "reason")
    return ProjectRequest(
        document=json.loads(row["document"]), **{name: row[name] for name in names}
    )
