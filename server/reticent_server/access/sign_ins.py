# SPDX-License-Identifier: Apache-2.0
"""Sessions of the console: begun by signing in, ended on the server by signing out.

A session's row is written when it begins and when it ends, and each is an act in the chain; when it
was last seen, and when it ends by itself, is the console's business (console.sessions).
"""

from collections.abc import Sequence
from secrets import token_hex

from sqlalchemy import Connection, Engine

from reticent_server.access import repository, tables
from reticent_server.access.identities import Identities
from reticent_server.access.service import Access
from reticent_server.chain.acts import Change, record, require_recorded
from reticent_server.chain.recorded import RecordedRows
from reticent_server.database import reading, writing
from reticent_server.domain.clock import Clock
from reticent_server.domain.principal import Principal
from reticent_server.errors import NotFound


class SignIns:
    """The sessions of all processes on the database."""

    def __init__(
        self, engine: Engine, access: Access, identities: Identities, clock: Clock
    ) -> None:
        self._engine = engine
        self._access = access
        self._identities = identities
        self._clock = clock
        self._recorded = RecordedRows()

    def begin(self, holder: Principal, *, by: str) -> str:
        """The id of a new session of somebody who has just proved who they are."""
        session_id = token_hex(16)
        values = {
            "id": session_id,
            "principal_id": holder.id,
            "key_id": holder.key_id or None,
            "identity_id": holder.identity_id or None,
            "begun_at": self._now(),
        }
        begun = Change("session.begin", tables.sessions, (session_id,), {"principal": holder.id})
        with writing(self._engine) as connection:
            repository.insert_session(connection, values)
            record(connection, [begun], by=by, at=self._now())
        return session_id

    def holder(self, session_id: str) -> Principal | None:
        """Whose session it is; None where it was ended, or the key or the link of an identity that
        it was begun with is not live.

        Raises Unavailable where a row is not as the chain says.
        """
        with reading(self._engine) as connection:
            row = repository.live_session(connection, session_id)
            if row is None:
                return None
            self._recorded.check(connection, tables.sessions, (session_id,), row, row["entry"])
        if row["identity_id"] is None:
            holder = self._access.holder_of_key(row["key_id"] or "")
        else:
            holder = self._identities.holder(row["identity_id"])
        return holder if holder is not None and holder.id == row["principal_id"] else None

    def end(self, session_id: str, *, by: str) -> None:
        """Ends a session, for every copy of its cookie; ending it twice is ending it once."""
        with writing(self._engine) as connection:
            self._end(connection, [session_id], by)

    def end_all(self, name: str, *, by: str) -> int:
        """Ends every session of a holder of that name; how many there were. Raises NotFound."""
        with writing(self._engine) as connection:
            holder = repository.principal_named(connection, name)
            if holder is None:
                raise NotFound("There is no analyst or curator of that name.")
            return self._end(connection, repository.sessions_of(connection, holder["id"]), by)

    def _end(self, connection: Connection, session_ids: Sequence[str], by: str) -> int:
        """Ends those that were not ended; how many there were."""
        live = [i for i in session_ids if repository.live_session(connection, i) is not None]
        require_recorded(connection, tables.sessions, *((session_id,) for session_id in live))
        ended = [i for i in live if repository.end_session(connection, i, self._now())]
        record(connection, [*map(_ended, ended)], by=by, at=self._now())
        return len(ended)

    def _now(self) -> str:
        return self._clock.now().isoformat(timespec="microseconds")


def _ended(session_id: str) -> Change:
    return Change("session.end", tables.sessions, (session_id,))
