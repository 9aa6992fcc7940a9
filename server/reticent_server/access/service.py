# SPDX-License-Identifier: Apache-2.0
"""Access: adds analysts and the staff, hands out and checks keys, keeps grants."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from secrets import token_hex
from typing import Any

from sqlalchemy import Connection, Engine, RowMapping
from sqlalchemy.exc import IntegrityError

from reticent_server.access import project_rows, repository, tables
from reticent_server.access.identity_rows import Identity, linked
from reticent_server.access.keys import ApiKey, digest, key_id, matches, new_key
from reticent_server.access.peppers import FIRST, Peppers, PepperSource
from reticent_server.access.projects import own_project
from reticent_server.chain.acts import Change, record, require_recorded
from reticent_server.chain.recorded import RecordedRows
from reticent_server.database import reading, writing
from reticent_server.domain.clock import Clock
from reticent_server.domain.principal import Principal
from reticent_server.domain.roles import ANALYST, LEAST, STAFF, Role, parse_roles
from reticent_server.errors import Conflict, InvalidRequest, NotFound, Unavailable
from reticent_server.events import EventLogger

log = EventLogger(__name__)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", re.ASCII)
_TAKEN = "An analyst or curator of that name, or a project, exists already."
_TAKEN_LINK = "Somebody of that name, a project, or a link of that identity exists already."
_REVOKED = "That analyst or curator was revoked, for good; add another name."
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
    roles: frozenset[Role] = ANALYST


class Access:
    """Keys are stored as HMAC-SHA-256 under the newest pepper; names are unique over both roles.

    Every change is recorded in the chain; `by` is who acts, as "cli:NAME" or "console:NAME".
    """

    def __init__(self, engine: Engine, peppers: PepperSource, clock: Clock) -> None:
        self._engine = engine
        self._peppers = peppers
        self._clock = clock
        self._recorded = RecordedRows()

    def add_analyst(
        self, name: str, *, by: str, expires_at: datetime | None = None
    ) -> tuple[str, str]:
        """(id, key) of a new analyst; the key is shown once. Raises Conflict for a taken name."""
        return self._add({"name": name, "role": "analyst"}, expires_at, by)

    def add_curator(
        self,
        name: str,
        roles: frozenset[Role] = LEAST,
        *,
        by: str,
        expires_at: datetime | None = None,
    ) -> str:
        """The key of a new one of the staff, who may do what the roles say. Raises Conflict for a
        taken name, InvalidRequest for roles that are not the staff's."""
        values = {"name": name, "role": "curator", "roles": _stored(roles)}
        return self._add(values, expires_at, by)[1]

    def add_linked(
        self, name: str, identity: Identity, roles: frozenset[Role] | None = None, *, by: str
    ) -> str:
        """The id of a new analyst, or with roles of a new one of the staff, who has no key: the
        identity provider says who it is. Raises Conflict for a name or an identity that is
        taken."""
        values = {"name": name, "role": "analyst"}
        if roles is not None:
            values = {"name": name, "role": "curator", "roles": _stored(roles)}
        return self._add(values, None, by, identity)[0]

    def set_roles(self, name: str, roles: frozenset[Role], *, by: str) -> None:
        """Gives one of the staff these roles instead of those before, for every key and session at
        once. Raises NotFound, Conflict if revoked, InvalidRequest."""
        stored = _stored(roles)
        with writing(self._engine) as connection:
            holder = self._holder(connection, name)
            if holder["role"] != "curator":
                raise NotFound("There is no curator of that name.")
            if holder["revoked_at"] is not None:
                raise Conflict(_REVOKED)
            repository.set_roles(connection, holder["id"], stored)
            told = {"roles": stored}
            act = Change("principal.roles", tables.principals, (holder["id"],), told)
            self._record(connection, [act], by)

    def authenticate(self, token: str) -> Principal | None:
        """The holder of a live key, else None; takes as long for an unknown key id as for a wrong
        secret.

        A key that is stored under an older pepper is stored again, under the newest. Raises
        Unavailable where the key or its holder is not as the chain says.
        """
        wanted = key_id(token)
        live = None if wanted is None else self._live_key(wanted)
        peppers = self._peppers()
        under = _under(live.key) if live else peppers.newest
        pepper = peppers.by_id.get(under)
        stored = live.key["digest"] if live and pepper is not None else None
        same = matches(pepper or peppers.in_use, token, stored)
        if not (live and same):
            return None
        if int(under) < int(peppers.newest):  # never back, where another machine is ahead
            self._store_again(live.key, token, peppers)
        return _principal(live)

    def known_key_id(self, token: str) -> str | None:
        """The id inside a token, where there is a live key of that id; whether it is that key is
        for `authenticate`."""
        wanted = key_id(token)
        return wanted if wanted is not None and self._live_key(wanted) is not None else None

    def holder_of_key(self, key_id: str) -> Principal | None:
        """The holder of a live key by the key's public id: whether a session that was begun with
        the key goes on. It proves nothing about the caller; `authenticate` does."""
        live = self._live_key(key_id)
        return None if live is None else _principal(live)

    def rotate(
        self, name: str, *, by: str, drop_old: bool = False, expires_at: datetime | None = None
    ) -> str:
        """A new key for an analyst or curator; only the newest of the old ones stays live.

        drop_old: no old key stays live. Raises NotFound, or Conflict if revoked.
        """
        with writing(self._engine) as connection:
            holder = self._holder(connection, name)
            if holder["revoked_at"] is not None:
                raise Conflict(_REVOKED)
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
        """Ends an analyst's or curator's access at once and for good. What was spent stays
        spent."""
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
        analyst = next((a for a in self.analysts() if a.name == name), None)
        if analyst is None:
            raise NotFound("There is no analyst of that name.")
        return analyst

    def grant(self, analyst_id: str, dataset: str, *, by: str) -> None:
        """Lets an analyst ask about a data set; granting twice is granting once. Raises
        NotFound."""
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

    def _store_again(self, key: Mapping[str, Any], token: str, peppers: Peppers) -> None:
        """Under the newest pepper. The key is good as it is, so that nobody is refused where it
        fails."""
        values = {"digest": digest(peppers.in_use, token), "pepper_id": peppers.newest}
        told = {"pepper": peppers.newest}
        try:
            with writing(self._engine) as connection:
                require_recorded(connection, tables.keys, (key["id"],))
                if repository.store_again(connection, key["id"], key["digest"], values):
                    again = Change("key.rehash", tables.keys, (key["id"],), told)
                    self._record(connection, [again], key["principal_id"])
        except Unavailable:
            log.warning("key_not_stored_again")

    def _live_key(self, key_id: str) -> repository.LiveKey | None:
        """A live key, held against the chain with its holder."""
        with reading(self._engine) as connection:
            live = repository.live_key(connection, key_id, self._now_ms())
            if live is not None:
                check, holder = self._recorded.check, live.holder
                check(connection, tables.keys, (key_id,), live.key, live.key_entry)
                principal = (holder["id"],)
                check(connection, tables.principals, principal, holder, live.holder_entry)
        return live

    def _in_role(self, role: str) -> tuple[Analyst, ...]:
        with reading(self._engine) as connection:
            live: dict[str, list[str]] = {}
            for key in self._live(connection):
                live.setdefault(key["principal_id"], []).append(key["id"])
            rows = repository.principals_in_role(connection, role)
        return tuple(_analyst(row, live.get(row["id"], [])) for row in rows)

    def _add(
        self,
        given: Mapping[str, str],
        expires_at: datetime | None,
        by: str,
        identity: Identity | None = None,
    ) -> tuple[str, str]:
        """(id, key): the key is empty where an identity is linked instead."""
        if not _NAME.fullmatch(given["name"]):
            raise InvalidRequest(
                "A name is 1 to 64 letters, digits, '.', '_', '@' or '-', and starts with a "
                "letter or digit."
            )
        principal_id = _PREFIX[given["role"]] + token_hex(8)
        values = {**given, "id": principal_id, "created_at": self._now()}
        told = {key: given[key] for key in ("role", "roles") if key in given}
        try:
            with writing(self._engine) as connection:
                repository.insert_principal(connection, values)
                proof, key = self._proof(connection, principal_id, expires_at, identity)
                own = self._own_project(connection, values)
                added = Change("principal.add", tables.principals, (principal_id,), told)
                self._record(connection, [added, proof, *own], by)
                return principal_id, key
        except IntegrityError:
            raise Conflict(_TAKEN if identity is None else _TAKEN_LINK) from None

    def _proof(
        self,
        connection: Connection,
        principal_id: str,
        expires_at: datetime | None,
        identity: Identity | None,
    ) -> tuple[Change, str]:
        """How a new holder proves who they are: an identity, or a key that is shown once."""
        if identity is not None:
            return linked(connection, principal_id, identity, self._now()), ""
        key = self._insert_key(connection, principal_id, expires_at)
        return Change("key.add", tables.keys, (key.id,), {"principal": principal_id}), key.token

    def _own_project(self, connection: Connection, holder: Mapping[str, str]) -> list[Change]:
        """Of a new analyst; of the staff none. Raises Conflict where a project has the name."""
        if holder["role"] != "analyst":
            return []
        if project_rows.shared_named(connection, holder["name"]) is not None:
            raise Conflict(_TAKEN)
        return own_project(connection, holder["id"], self._now())

    def _insert_key(
        self, connection: Connection, principal_id: str, expires_at: datetime | None
    ) -> ApiKey:
        key, peppers = new_key(), self._peppers()
        values = {
            "id": key.id,
            "principal_id": principal_id,
            "digest": digest(peppers.in_use, key.token),
            "pepper_id": None if peppers.newest == FIRST else peppers.newest,
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


def _under(key: Mapping[str, Any]) -> str:
    """The id of the pepper that a key is stored under."""
    return str(key["pepper_id"] or FIRST)


def _principal(live: repository.LiveKey) -> Principal:
    holder = live.holder
    return Principal(holder["id"], holder["name"], roles_of(holder), live.key["id"])


def roles_of(holder: Mapping[str, Any] | RowMapping) -> frozenset[Role]:
    """What a row of the principals says; a curator's without roles is of the time before there were
    any."""
    if holder["role"] != "curator":
        return ANALYST
    return STAFF if holder["roles"] is None else parse_roles(holder["roles"].split())


def _stored(roles: frozenset[Role]) -> str:
    return " ".join(sorted(parse_roles(roles)))


def _analyst(row: RowMapping, live: Sequence[str]) -> Analyst:
    """live: ids of its live keys, newest first."""
    revoked = row["revoked_at"] is not None
    keys = () if revoked else live
    newest = keys[0] if keys else None
    return Analyst(
        row["id"], row["name"], row["created_at"], revoked, len(keys), newest, roles_of(row)
    )


def _revoked(key_id: str) -> Change:
    return Change("key.revoke", tables.keys, (key_id,))


def _granted(action: str, analyst_id: str, dataset: str) -> Change:
    return Change(action, tables.grants, (analyst_id, dataset))


def _milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)
