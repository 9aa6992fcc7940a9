# SPDX-License-Identifier: Apache-2.0
"""Identities: which subject of the identity provider is which analyst or member of the staff.

A link is made by whoever manages accounts, and by nobody else: a subject that is not linked is
refused, and no account comes into being by signing in. Every link and its end is an act in the
chain, which names ids and not the subject; the row's digest covers the subject.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import IntegrityError

from reticent_server.access import identity_rows, repository, tables
from reticent_server.access.identity_rows import Identity, LiveIdentity, linked
from reticent_server.access.service import roles_of
from reticent_server.chain.acts import Change, record, require_recorded
from reticent_server.chain.recorded import RecordedRows
from reticent_server.database import reading, writing
from reticent_server.domain.clock import Clock
from reticent_server.domain.principal import Principal
from reticent_server.errors import Conflict, NotFound

_TAKEN = "That identity is linked with somebody already; unlink it first."


class Identities:
    """The links of all processes on the database; `by` is who acts, as "cli:NAME"."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._recorded = RecordedRows()

    def link(self, name: str, identity: Identity, *, by: str) -> None:
        """Lets whoever has that identity be that holder. Raises NotFound, Conflict (revoked, or
        linked)."""
        try:
            with writing(self._engine) as connection:
                holder = repository.principal_named(connection, name, lock=True)
                if holder is None:
                    raise NotFound("There is no analyst or curator of that name.")
                if holder["revoked_at"] is not None:
                    raise Conflict(
                        "That analyst or curator was revoked, for good; add another name."
                    )
                require_recorded(connection, tables.principals, (holder["id"],))
                made = linked(connection, holder["id"], identity, self._now())
                record(connection, [made], by=by, at=self._now())
        except IntegrityError:
            raise Conflict(_TAKEN) from None

    def unlink(self, name: str, *, by: str) -> int:
        """Ends every link of a holder, and the sessions that were begun by one; how many links
        there were. Raises NotFound."""
        with writing(self._engine) as connection:
            holder = repository.principal_named(connection, name, lock=True)
            if holder is None:
                raise NotFound("There is no analyst or curator of that name.")
            live = [row["id"] for row in identity_rows.identities_of(connection, holder["id"])]
            require_recorded(
                connection, tables.identities, *((identity_id,) for identity_id in live)
            )
            for identity_id in live:
                identity_rows.end_identity(connection, identity_id, self._now())
            ended = [Change("identity.unlink", tables.identities, (i,)) for i in live]
            record(connection, ended, by=by, at=self._now())
        return len(live)

    def of(self, principal_id: str) -> tuple[Identity, ...]:
        """The identities that are linked with a holder, oldest first."""
        with reading(self._engine) as connection:
            rows = identity_rows.identities_of(connection, principal_id)
        return tuple(Identity(row["issuer"], row["claim"], row["value"]) for row in rows)

    def holder_of(self, issuer: str, claims: Mapping[str, Any]) -> Principal | None:
        """Who is linked with the subject of verified claims, else with its verified address; None:
        nobody.

        Raises Unavailable where a row is not as the chain says.
        """
        by_subject = self._with_claim(issuer, "sub", claims.get("sub"))
        if by_subject is not None or claims.get("email_verified") is not True:
            return by_subject
        address = claims.get("email")
        return self._with_claim(
            issuer, "email", identity_rows.address_of(address) if isinstance(address, str) else None
        )

    def holder(self, identity_id: str) -> Principal | None:
        """The holder of a live link: whether a session that was begun by it goes on."""
        with reading(self._engine) as connection:
            return self._checked(connection, identity_rows.with_id(connection, identity_id))

    def _with_claim(self, issuer: str, claim: str, value: object) -> Principal | None:
        if not (isinstance(value, str) and value.isprintable()):
            return None
        with reading(self._engine) as connection:
            identity = identity_rows.with_claim(connection, issuer, claim, value)
            return self._checked(connection, identity)

    def _checked(self, connection: Connection, live: LiveIdentity | None) -> Principal | None:
        """The holder, held against the chain with the link."""
        if live is None:
            return None
        check, identity, holder = self._recorded.check, live.identity, live.holder
        check(connection, tables.identities, (identity["id"],), identity, live.identity_entry)
        check(connection, tables.principals, (holder["id"],), holder, live.holder_entry)
        return Principal(holder["id"], holder["name"], roles_of(holder), identity_id=identity["id"])

    def _now(self) -> str:
        return self._clock.now().isoformat(timespec="microseconds")
