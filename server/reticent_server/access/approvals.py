# SPDX-License-Identifier: Apache-2.0
"""Four eyes: an act that a population's policy asks a second person for is proposed, then approved
by somebody else, then done once, by sending it again as it was proposed.

A proposal is for exactly one act: its kind, its population and its document. An approved one that
nobody has used within VALID_DAYS of being proposed is worth nothing. A salt stands in each
document: the chain has a digest of the row, by which nobody is to try what was proposed.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Any

from sqlalchemy import Connection, Engine, RowMapping, insert, select, update

from reticent_server.access.tables import proposals
from reticent_server.chain.acts import Change, record, require_recorded
from reticent_server.chain.entries import canonical_json
from reticent_server.database import reading, writing
from reticent_server.domain.clock import Clock
from reticent_server.errors import Conflict, NotFound, PolicyRefused, SecondPerson

VALID_DAYS = 7
"""A working week: what was approved for a reason of last month may have lost the reason."""

SHOWN = 200

_SALT = "salt"
Wanted = tuple[str, str, Mapping[str, Any]]
"""An act, its population and its document."""

_NO_PERSON = (
    "The policy asks for a second person, so this is done by people with keys: in the console, "
    "or with "
    "RETICENT_KEY_FILE."
)


@dataclass(frozen=True, slots=True)
class ProposedAct:
    """status: pending, approved, refused or used. act: a key of pipeline.second_person.NEEDS."""

    id: str
    act: str
    population: str
    document: Mapping[str, Any]
    proposed_by: str
    proposed_at: str
    status: str
    decided_by: str | None
    is_valid: bool


class Approvals:
    """The proposals of all processes on the database. `by` is who acts, as "console:NAME" or
    "key:NAME"."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock

    def take(self, act: str, population: str, document: Mapping[str, Any], *, by: str) -> None:
        """Uses up the approval of exactly this act; of many at once, one passes.

        Without one it is proposed, and SecondPerson raised. Raises PolicyRefused for who has no
        key.
        """
        person(by)
        wanted = (act, population, document)
        with writing(self._engine) as connection:
            agreed = [row for row in _same(connection, wanted) if self._is_valid(row)]
            for row in (row for row in agreed if row["status"] == "approved"):
                require_recorded(connection, proposals, (row["id"],))
                if _move(connection, row["id"], "approved", status="used"):
                    self._record(connection, "proposal.use", row["id"], by)
                    return
            waiting = next((row["id"] for row in agreed if row["status"] == "pending"), None)
            proposed = waiting or self._propose(connection, wanted, by)
        raise SecondPerson(proposed)

    def approve(self, proposal_id: str, *, by: str) -> None:
        """Raises NotFound, Conflict (decided or too old), PolicyRefused for whoever has proposed
        it."""
        self._decide(proposal_id, "approved", "proposal.approve", by)

    def refuse(self, proposal_id: str, *, by: str) -> None:
        """As `approve`; but whoever has proposed it may take it back."""
        self._decide(proposal_id, "refused", "proposal.refuse", by)

    def one(self, proposal_id: str) -> ProposedAct:
        """Raises NotFound."""
        proposal = next((p for p in self.all() if p.id == proposal_id), None)
        if proposal is None:
            raise NotFound("There is no such proposal.")
        return proposal

    def all(self) -> tuple[ProposedAct, ...]:
        """The last ones, newest first, those that wait before."""
        newest = select(proposals).order_by(
            proposals.c.status != "pending", proposals.c.proposed_at.desc(), proposals.c.id
        )
        with reading(self._engine) as connection:
            rows = connection.execute(newest.limit(SHOWN)).mappings().all()
        return tuple(self._proposal(row) for row in rows)

    def _propose(self, connection: Connection, wanted: Wanted, by: str) -> str:
        act, population, document = wanted
        values = {
            "id": "ap_" + token_hex(8),
            "act": act,
            "population": population,
            "document": canonical_json({**document, _SALT: token_hex(16)}),
            "proposed_by": by,
            "proposed_at": self._now().isoformat(timespec="microseconds"),
            "status": "pending",
        }
        connection.execute(insert(proposals).values(values))
        self._record(connection, "proposal.add", values["id"], by, act=act, population=population)
        return values["id"]

    def _decide(self, proposal_id: str, status: str, action: str, by: str) -> None:
        who = person(by)
        with writing(self._engine) as connection:
            query = select(proposals).where(proposals.c.id == proposal_id)
            row = connection.execute(query).mappings().one_or_none()
            if row is None:
                raise NotFound("There is no such proposal.")
            require_recorded(connection, proposals, (proposal_id,))
            if status == "approved" and person(row["proposed_by"]) == who:
                raise PolicyRefused(
                    "The person who proposed it cannot approve it; somebody else must."
                )
            if not self._is_valid(row):
                raise Conflict(
                    f"It was proposed more than {VALID_DAYS} days ago; propose it again."
                )
            if not _move(connection, proposal_id, "pending", status=status, decided_by=by):
                raise Conflict("Somebody has decided this proposal already.")
            self._record(connection, action, proposal_id, by)

    def _proposal(self, row: RowMapping) -> ProposedAct:
        names = ("id", "act", "population", "proposed_by", "proposed_at", "status", "decided_by")
        plain = {name: row[name] for name in names}
        return ProposedAct(
            **plain, document=json.loads(_unsalted(row)), is_valid=self._is_valid(row)
        )

    def _is_valid(self, row: RowMapping) -> bool:
        proposed = datetime.fromisoformat(row["proposed_at"])
        return self._now() - proposed <= timedelta(days=VALID_DAYS)

    def _record(
        self, connection: Connection, action: str, proposal_id: str, by: str, **told: str
    ) -> None:
        at = self._now().isoformat(timespec="microseconds")
        record(connection, [Change(action, proposals, (proposal_id,), told)], by=by, at=at)

    def _now(self) -> datetime:
        return self._clock.now()


def person(by: str) -> str:
    """The name of whoever has a key, by console or by command line alike. Raises PolicyRefused."""
    way, _, name = by.partition(":")
    if way not in {"console", "key"} or not name:
        raise PolicyRefused(_NO_PERSON)
    return name


def _same(connection: Connection, wanted: Wanted) -> list[RowMapping]:
    """Proposals of this very act that were not refused or used, oldest first."""
    act, population, document = wanted
    query = (
        select(proposals)
        .where(proposals.c.act == act, proposals.c.population == population)
        .where(proposals.c.status.in_(["pending", "approved"]))
        .order_by(proposals.c.proposed_at, proposals.c.id)
    )
    text = canonical_json(document)
    return [row for row in connection.execute(query).mappings() if _unsalted(row) == text]


def _unsalted(row: RowMapping) -> str:
    """What was proposed, as canonical JSON."""
    document = json.loads(row["document"])
    return canonical_json({key: part for key, part in document.items() if key != _SALT})


def _move(connection: Connection, proposal_id: str, before: str, **values: str) -> bool:
    """Whether it was in the state `before`."""
    query = update(proposals).where(proposals.c.id == proposal_id, proposals.c.status == before)
    return connection.execute(query.values(values)).rowcount == 1
