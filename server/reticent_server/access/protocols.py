# SPDX-License-Identifier: Apache-2.0
"""Protocols of pooled studies that a curator has accepted for a data set, until they are
withdrawn."""

from dataclasses import dataclass

from sqlalchemy import Connection, Engine, RowMapping, Update, insert, select, update

from reticent_server.access.tables import protocols
from reticent_server.chain.acts import Change, record, require_recorded
from reticent_server.chain.recorded import RecordedRows
from reticent_server.chain.repository import last_about
from reticent_server.database import reading, writing
from reticent_server.domain.clock import Clock
from reticent_server.domain.protocol import Agreed
from reticent_server.errors import Conflict, NotFound

_ENTRY = "last entry"
_NOT_ACCEPTED = "No protocol of that digest is accepted for that data set."


@dataclass(frozen=True, slots=True)
class AcceptedProtocol:
    """agreed: the document. site: whom it is about here. withdrawn_at: None while it holds."""

    digest: str
    dataset: str
    site: str
    agreed: Agreed
    signature: str
    accepted_by: str
    accepted_at: str
    withdrawn_at: str | None


class Protocols:
    """Every change is recorded in the chain; `by` is who acts."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._recorded = RecordedRows()

    def accept(self, agreed: Agreed, dataset: str, site: str, signature: str, *, by: str) -> None:
        """From now on releases may name it. Raises Conflict where it holds already."""
        values = {
            "site": site,
            "document": agreed.canonical.decode(),
            "signature": signature,
            "accepted_by": by,
            "accepted_at": self._now(),
            "withdrawn_at": None,
        }
        key = (agreed.digest, dataset)
        with writing(self._engine) as connection:
            require_recorded(connection, protocols, key)
            row = _row(connection, *key)
            if row is not None and row["withdrawn_at"] is None:
                raise Conflict("That protocol is accepted for that data set already.")
            if row is None:
                own = {"digest": key[0], "dataset": key[1]}
                connection.execute(insert(protocols).values(values | own))
            else:
                connection.execute(_change(*key).values(values))
            self._record(connection, "protocol.accept", key, by, site=site)

    def withdraw(self, digest: str, dataset: str, *, by: str) -> None:
        """From now on nothing is released by it; what was released stays. Raises NotFound."""
        key = (digest, dataset)
        with writing(self._engine) as connection:
            row = _row(connection, *key)
            if row is None or row["withdrawn_at"] is not None:
                raise NotFound(_NOT_ACCEPTED)
            require_recorded(connection, protocols, key)
            connection.execute(_change(*key).values(withdrawn_at=self._now()))
            self._record(connection, "protocol.withdraw", key, by)

    def holding(self, digest: str, dataset: str) -> AcceptedProtocol | None:
        """What a release may name; None: unknown or withdrawn. Raises Unavailable where the row is
        not as the chain says.
        """
        with reading(self._engine) as connection:
            row = _row(connection, digest, dataset) if digest.isascii() else None
            if row is None or row["withdrawn_at"] is not None:
                return None
            plain = {column.name: row[column.name] for column in protocols.columns}
            key = (digest, dataset)
            self._recorded.check(connection, protocols, key, plain, row[_ENTRY])
        return _accepted(row)

    def all(self) -> tuple[AcceptedProtocol, ...]:
        """Also those that were withdrawn, the last accepted first."""
        newest = select(protocols).order_by(protocols.c.accepted_at.desc(), protocols.c.digest)
        with reading(self._engine) as connection:
            rows = connection.execute(newest).mappings().all()
        return tuple(map(_accepted, rows))

    def _record(
        self, connection: Connection, action: str, key: tuple[str, str], by: str, **told: str
    ) -> None:
        record(connection, [Change(action, protocols, key, told)], by=by, at=self._now())

    def _now(self) -> str:
        return self._clock.now().isoformat(timespec="microseconds")


def _row(connection: Connection, digest: str, dataset: str) -> RowMapping | None:
    entry = last_about(protocols, *protocols.primary_key.columns).label(_ENTRY)
    query = select(protocols, entry).where(
        protocols.c.digest == digest, protocols.c.dataset == dataset
    )
    return connection.execute(query).mappings().one_or_none()


def _change(digest: str, dataset: str) -> Update:
    return update(protocols).where(protocols.c.digest == digest, protocols.c.dataset == dataset)


def _accepted(row: RowMapping) -> AcceptedProtocol:
    names = ("digest", "dataset", "site", "signature", "accepted_by", "accepted_at", "withdrawn_at")
    plain = {name: row[name] for name in names}
    return AcceptedProtocol(agreed=Agreed.from_text(row["document"]), **plain)
