# SPDX-License-Identifier: Apache-2.0
"""Rotation of the pepper: a new one, without a new key for anybody; and the end of an old one.

Each is an act in the chain. The secrets are written inside the transaction, last: where that fails,
nothing is recorded; where committing fails after it, a new pepper is there that the chain does not
name, or a retired one is gone while its keys are not revoked yet, and open nothing (`states` calls
it missing).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Engine, func, insert, or_, select, update

from reticent_server.access.peppers import FIRST, Peppers
from reticent_server.access.secret_places import SecretsPlace
from reticent_server.access.secrets import Secrets
from reticent_server.access.tables import keys, peppers, principals
from reticent_server.chain.acts import Change, record, require_recorded
from reticent_server.database import reading, writing
from reticent_server.domain.clock import Clock
from reticent_server.errors import Conflict

Write = Callable[[Secrets], None]
"""Stores new secrets elsewhere than in the place that they come from."""


@dataclass(frozen=True, slots=True)
class PepperState:
    """keys: live ones that are stored under it. state: "in use", "staged", "old", or "missing"
    where keys are stored under it and the secrets do not have it."""

    id: str
    state: str
    keys: int


class Rotation:
    """Changes the peppers of one place; `by` is who acts."""

    def __init__(self, engine: Engine, place: SecretsPlace, clock: Clock) -> None:
        self._engine = engine
        self._place = place
        self._clock = clock

    def states(self) -> tuple[PepperState, ...]:
        """Every pepper that there is, or that a live key is stored under, oldest first."""
        known = self._place.load().peppers
        with reading(self._engine) as connection:
            counts = self._counts(connection)
        ids = sorted({*known.by_id, *counts}, key=int)
        return tuple(PepperState(i, _state(known, i), counts.get(i, 0)) for i in ids)

    def rotate(self, *, by: str, stage: bool = False, write: Write | None = None) -> str:
        """The id of the new pepper, in use from now on, or only staged. Raises Conflict,
        CuratorError."""
        with writing(self._engine) as connection:
            before = self._place.load()
            after = before.peppers.with_new() if stage else before.peppers.rotated()
            made = after.staged if stage else after.newest
            action = "pepper.stage" if stage else "pepper.rotate"
            changes = [self._present(connection, i, action) for i in (made,) if i is not None]
            record(connection, changes, by=by, at=self._now())
            self._store(replace(before, peppers=after), write)
        return str(made)

    def retire(
        self, pepper_id: str, *, by: str, force: bool = False, write: Write | None = None
    ) -> int:
        """Forgets an old pepper; how many keys were revoked with it, by force.

        Raises NotFound, Conflict (it is in use, or keys are left and there is no force),
        CuratorError.
        """
        with writing(self._engine) as connection:
            before = self._place.load()
            after = before.peppers.without(pepper_id)
            left = self._left(connection, pepper_id)
            if left and not force:
                raise Conflict(
                    f"{len(left)} live keys were not used since that pepper went out of use. "
                    "Wait, rotate "
                    "these keys, or revoke them with --force."
                )
            require_recorded(connection, keys, *((key_id,) for key_id in left))
            query = update(keys).where(keys.c.id.in_(left)).values(revoked_at=self._now())
            connection.execute(query)
            ended = [Change("key.revoke", keys, (key_id,)) for key_id in left]
            retired = self._present(connection, pepper_id, "pepper.retire", retired=self._now())
            record(connection, [*ended, retired], by=by, at=self._now())
            self._store(replace(before, peppers=after), write)
        return len(left)

    def _store(self, new: Secrets, write: Write | None) -> None:
        if write is None:
            self._place.change(lambda present: replace(present, peppers=new.peppers))
        else:
            write(new)

    def _present(
        self, connection: Connection, pepper_id: str, action: str, retired: str | None = None
    ) -> Change:
        """The row of a pepper, made where there is none yet; what is to be recorded."""
        require_recorded(connection, peppers, (pepper_id,))
        query = select(peppers.c.id).where(peppers.c.id == pepper_id)
        if connection.scalar(query) is None:
            values = {"id": pepper_id, "made_at": self._now(), "retired_at": retired}
            connection.execute(insert(peppers).values(values))
        elif retired is not None:
            ended = update(peppers).where(peppers.c.id == pepper_id)
            connection.execute(ended.values(retired_at=retired))
        return Change(action, peppers, (pepper_id,))

    def _counts(self, connection: Connection) -> Mapping[str, int]:
        under = func.coalesce(keys.c.pepper_id, FIRST)
        query = select(under, func.count()).select_from(keys).join(principals)
        rows = connection.execute(query.where(*self._live()).group_by(under)).all()
        return {str(pepper_id): int(count) for pepper_id, count in rows}

    def _left(self, connection: Connection, pepper_id: str) -> Sequence[str]:
        under = func.coalesce(keys.c.pepper_id, FIRST) == pepper_id
        query = select(keys.c.id).join(principals).where(under, *self._live())
        return connection.execute(query.order_by(keys.c.id)).scalars().all()

    def _live(self) -> tuple[Any, ...]:
        now_ms = int(self._clock.now().timestamp() * 1000)
        return (
            keys.c.revoked_at.is_(None),
            principals.c.revoked_at.is_(None),
            or_(keys.c.expires_ms.is_(None), keys.c.expires_ms > now_ms),
        )

    def _now(self) -> str:
        return self._clock.now().isoformat(timespec="microseconds")


def _state(known: Peppers, pepper_id: str) -> str:
    if pepper_id not in known.by_id:
        return "missing"
    if pepper_id == known.newest:
        return "in use"
    return "staged" if pepper_id == known.staged else "old"
