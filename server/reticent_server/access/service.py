"""Access: adds analysts and curators, hands out and checks keys, keeps grants."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from secrets import token_hex

from sqlalchemy import Connection, Engine, RowMapping
from sqlalchemy.exc import IntegrityError

from reticent_server.access import repository, tables
from reticent_server.access.keys import ApiKey, digest, key_id, matches, new_key
from reticent_server.chain.acts import Change, record, require_recorded
from reticent_server.chain.recorded import RecordedRows
from reticent_server.database import reading, writing
from reticent_server.domain.clock import Clock
from reticent_server.domain.principal import Principal
from reticent_server.errors import Conflict, InvalidRequest, NotFound

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", re.ASCII)
_PREFIX = {"analyst": "an_", "curator": "cu_"}


@dataclass(frozen=True, slots=True)
class Analyst:
    """An analyst as a curator sees it; times are ISO 8601 in UTC.

    newest_key: the public id inside the newest live key (`rk_<id>_…`), if there is one.
    """

    id: str
    name: str
    created_at: str
    revoked: bool
    live_keys: int
    newest_key: str | None = None


class Access:
    """Keys are stored as HMAC-SHA-256 under `pepper`; names are unique over both roles.

    Every change is recorded in the chain; `by` is who acts, as "cli:NAME" or "console:NAME".
    """

    def __init__(self, engine: Engine, pepper: bytes, clock: Clock) -> None:
        self._engine = engine
        self._pepper = pepper
        self._clock = clock
        self._recorded = RecordedRows()

    def add_analyst(
        self, name: str, *, by: str, expires_at: datetime | None = None
    ) -> tuple[str, str]:
        """(id, key) of a new analyst; the key is shown once. Raises Conflict for a taken name."""
        return self._add(name, "analyst", expires_at, by)

    def add_curator(self, name: str, *, by: str, expires_at: datetime | None = None) -> str:
        """The key of a new curator. Raises Conflict for a taken name."""
        return self._add(name, "curator", expires_at, by)[1]

    def authenticate(self, token: str) -> Principal | None:
        """The holder of a live key, else None; takes as long for an unknown key id as for a wrong secret.

        Raises Unavailable where the key or its holder is not as the chain says.
        """
        wanted = key_id(token)
        found = None if wanted is None else self._live_key(wanted)
        same = matches(self._pepper, token, found.key["digest"] if found else None)
        return _principal(found) if found and same else None

    def known_key_id(self, token: str) -> str | None:
        """The id inside a token, where there is a live key of that id; whether it is that key is for
        `authenticate`."""
        wanted = key_id(token)
        return wanted if wanted is not None and self._live_key(wanted) is not None else None

    def holder_of_key(self, key_id: str) -> Principal | None:
        """The holder of a live key by the key's public id: whether a session that was begun with the
        key goes on. It proves nothing about the caller; `authenticate` does."""
        found = self._live_key(key_id)
        return None if found is None else _principal(found)

    def rotate(
        self, name: str, *, by: str, drop_old: bool = False, expires_at: datetime | None = None
    ) -> str:
        """A new key for an analyst or curator; only the newest of the old ones stays live.

        drop_old: no old key stays live. Raises NotFound, or Conflict if revoked.
        """
        with writing(self._engine) as connection:
            holder = self._holder(connection, name)
            if holder["revoked_at"] is not None:
                raise Conflict("That analyst or curator was revoked, for good; add another name.")
            live = [k["id"] for k in self._live(connection) if k["principal_id"] == holder["id"]]
            keep = live[0] if live and not drop_old else None
            old = repository.unrevoked_keys(connection, holder["id"])
            require_recorded(connection, tables.keys, *((key_id,) for key_id in old))
            ended = repository.revoke_keys(connection, holder["id"], keep, self._now())
            key = self._insert_key(connection, holder["id"], expires_at)
            made = Change("key.add", tables.keys, (key.id,), {"principal": holder["id"]})
            self._record(connection, [*map(_revoked, ended), made], by)
            return key.token

    def revoke(self, name: str, *, by: str) -> None:
        """Ends an analyst's or curator's access at once and for good. What was spent stays spent."""
        with writing(self._engine) as connection:
            holder = self._holder(connection, name)
            if repository.mark_revoked(connection, holder["id"], self._now()):
                act = Change("principal.revoke", tables.principals, (holder["id"],))
                self._record(connection, [act], by)

    def analysts(self) -> tuple[Analyst, ...]:
        """All analysts by name, revoked ones too."""
        return self._in_role("analyst")

    def curators(self) -> tuple[Analyst, ...]:
        """All curators by name, revoked ones too, in the same form."""
        return self._in_role("curator")

    def analyst(self, name: str) -> Analyst:
        """Raises NotFound."""
        found = next((a for a in self.analysts() if a.name == name), None)
        if found is None:
            raise NotFound("There is no analyst of that name.")
        return found

    def grant(self, analyst_id: str, dataset: str, *, by: str) -> None:
        """Lets an analyst ask about a data set; granting twice is granting once. Raises NotFound."""
        if self.granted(analyst_id, dataset):
            return
        try:
            with writing(self._engine) as connection:
                holder = repository.principal_with(connection, analyst_id)
                if holder is None or holder["role"] != "analyst":
                    raise NotFound("There is no such analyst.")
                values = {"analyst_id": analyst_id, "dataset": dataset, "granted_at": self._now()}
                repository.insert_grant(connection, values)
                self._record(connection, [_granted("grant.add", analyst_id, dataset)], by)
        except IntegrityError:
            pass  # granted by another at this moment, or earlier to an analyst revoked since

    def revoke_grant(self, analyst_id: str, dataset: str, *, by: str) -> None:
        """Takes a grant back; what was spent stays spent."""
        with writing(self._engine) as connection:
            if repository.live_grant(connection, analyst_id, dataset) is not None:
                require_recorded(connection, tables.grants, (analyst_id, dataset))
            if repository.delete_grant(connection, analyst_id, dataset):
                self._record(connection, [_granted("grant.revoke", analyst_id, dataset)], by)

    def granted(self, analyst_id: str, dataset: str) -> bool:
        """Whether the analyst may ask about the data set, whose name may come from a request."""
        if not dataset.isprintable():
            return False
        with reading(self._engine) as connection:
            row = repository.live_grant(connection, analyst_id, dataset)
            if row is None:
                return False
            key = (analyst_id, dataset)
            self._recorded.check(connection, tables.grants, key, row, row["entry"])
        return True

    def grants(self, analyst_id: str) -> tuple[str, ...]:
        """Names of the data sets granted to an analyst."""
        with reading(self._engine) as connection:
            return tuple(repository.grants_of(connection, analyst_id))

    def _live_key(self, key_id: str) -> repository.LiveKey | None:
        """A live key, held against the chain with its holder."""
        with reading(self._engine) as connection:
            found = repository.live_key(connection, key_id, self._now_ms())
            if found is not None:
                check, holder = self._recorded.check, found.holder
                check(connection, tables.keys, (key_id,), found.key, found.key_entry)
                principal = (holder["id"],)
                check(connection, tables.principals, principal, holder, found.holder_entry)
        return found

    def _in_role(self, role: str) -> tuple[Analyst, ...]:
        with reading(self._engine) as connection:
            live: dict[str, list[str]] = {}
            for key in self._live(connection):
                live.setdefault(key["principal_id"], []).append(key["id"])
            rows = repository.principals_in_role(connection, role)
        return tuple(_analyst(row, live.get(row["id"], [])) for row in rows)

    def _add(self, name: str, role: str, expires_at: datetime | None, by: str) -> tuple[str, str]:
        if not _NAME.fullmatch(name):
            raise InvalidRequest(
                "A name is 1 to 64 letters, digits, '.', '_', '@' or '-', and starts with a letter or digit."
            )
        principal_id = _PREFIX[role] + token_hex(8)
        values = {"id": principal_id, "name": name, "role": role, "created_at": self._now()}
        try:
            with writing(self._engine) as connection:
                repository.insert_principal(connection, values)
                key = self._insert_key(connection, principal_id, expires_at)
                added = Change("principal.add", tables.principals, (principal_id,), {"role": role})
                made = Change("key.add", tables.keys, (key.id,), {"principal": principal_id})
                self._record(connection, [added, made], by)
                return principal_id, key.token
        except IntegrityError:
            raise Conflict("An analyst or curator of that name exists already.") from None

    def _insert_key(
        self, connection: Connection, principal_id: str, expires_at: datetime | None
    ) -> ApiKey:
        key = new_key()
        values = {
            "id": key.id,
            "principal_id": principal_id,
            "digest": digest(self._pepper, key.token),
            "created_at": self._now(),
            "expires_ms": None if expires_at is None else _milliseconds(expires_at),
        }
        repository.insert_key(connection, values)
        return key

    def _holder(self, connection: Connection, name: str) -> RowMapping:
        holder = repository.principal_named(connection, name, lock=True)
        if holder is None:
            raise NotFound("There is no analyst or curator of that name.")
        require_recorded(connection, tables.principals, (holder["id"],))
        return holder

    def _live(self, connection: Connection) -> Sequence[RowMapping]:
        return repository.live_keys(connection, self._now_ms())

    def _record(self, connection: Connection, changes: Sequence[Change], by: str) -> None:
        record(connection, changes, by=by, at=self._now())

    def _now(self) -> str:
        return self._clock.now().isoformat(timespec="microseconds")

    def _now_ms(self) -> int:
        return _milliseconds(self._clock.now())


def _principal(found: repository.LiveKey) -> Principal:
    holder = found.holder
    return Principal(holder["id"], holder["name"], holder["role"], found.key["id"])


def _analyst(row: RowMapping, live: Sequence[str]) -> Analyst:
    """live: ids of its live keys, newest first."""
    revoked = row["revoked_at"] is not None
    keys = () if revoked else live
    newest = keys[0] if keys else None
    return Analyst(row["id"], row["name"], row["created_at"], revoked, len(keys), newest)


def _revoked(key_id: str) -> Change:
    return Change("key.revoke", tables.keys, (key_id,))


def _granted(action: str, analyst_id: str, dataset: str) -> Change:
    return Change(action, tables.grants, (analyst_id, dataset))


def _milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)
