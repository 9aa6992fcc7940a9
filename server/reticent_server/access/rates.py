# SPDX-License-Identifier: Apache-2.0
"""How often one key may ask, over every process on the database.

A counter that each process keeps for itself would allow as many times the limit as there are
processes, and one that each request writes to the database would cost more than the request. So a
process takes a share of a key's window from the database (one write), hands it out from memory, and
comes back for the next; a window that is used up is remembered until it ends. At most the limit is
allowed in a window, whatever the number of processes; what a process has taken and not handed out
is lost with the window, at most one share a process.
"""

from dataclasses import dataclass
from threading import Lock

from limits import RateLimitItemPerMinute
from limits.storage import Storage
from limits.strategies import FixedWindowRateLimiter
from sqlalchemy import Engine, text

from reticent_server.database import reading, writing
from reticent_server.domain.clock import Clock

SHARES = 20
LARGEST_SHARE = 1000

LATEST = 2
"""In lengths of a window from now: one that ends later is from before the clock was set back, or
was written by somebody else, and has ended. (Clocks of several machines may differ, and a writer
waits for its turn: by much less.)"""

_TAKE = text(
    "INSERT INTO access_rates (id, hits, until_ms) VALUES (:id, :amount, :until_ms) "
    "ON CONFLICT (id) DO UPDATE SET "
    "hits = CASE WHEN access_rates.until_ms > :now_ms AND access_rates.until_ms <= :latest_ms "
    "THEN access_rates.hits + :amount ELSE :amount END, "
    "until_ms = CASE WHEN access_rates.until_ms > :now_ms AND access_rates.until_ms <= :latest_ms "
    "THEN access_rates.until_ms ELSE :until_ms END "
    "RETURNING hits"
)


class DatabaseStorage(Storage):
    """Windows in the table access_rates, for the strategies of the library `limits`."""

    STORAGE_SCHEME = None

    def __init__(self, engine: Engine, clock: Clock) -> None:
        super().__init__()
        self._engine = engine
        self._clock = clock

    @property
    def base_exceptions(self) -> type[Exception]:
        """Which exceptions `limits` counts as a failure of the storage: all."""
        return Exception

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """The hits in the key's window with `amount` more; the first one begins it."""
        now_ms = self._now_ms()
        ends = {"until_ms": now_ms + 1000 * expiry, "latest_ms": now_ms + 1000 * LATEST * expiry}
        given = {"id": key, "amount": amount, "now_ms": now_ms, **ends}
        with writing(self._engine) as connection:
            return int(connection.execute(_TAKE, given).scalar_one())

    def get(self, key: str) -> int:
        """The hits in the key's window; 0 where it has ended."""
        hits, until_ms = self._window(key)
        return hits if until_ms > self._now_ms() else 0

    def get_expiry(self, key: str) -> float:
        """When the key's window ends, in seconds since the epoch."""
        return self._window(key)[1] / 1e3

    def check(self) -> bool:
        """Whether the table can be read."""
        self._window("")
        return True

    def clear(self, key: str) -> None:
        """Forgets the key's window."""
        with writing(self._engine) as connection:
            connection.execute(text("DELETE FROM access_rates WHERE id = :id"), {"id": key})

    def reset(self) -> int | None:
        """Forgets every window."""
        with writing(self._engine) as connection:
            connection.execute(text("DELETE FROM access_rates"))
        return None

    def _window(self, key: str) -> tuple[int, int]:
        query = text("SELECT hits, until_ms FROM access_rates WHERE id = :id")
        with reading(self._engine) as connection:
            row = connection.execute(query, {"id": key}).one_or_none()
        return (0, 0) if row is None else (row[0], row[1])

    def _now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)


@dataclass(slots=True)
class _Share:
    """What this process may still hand out of a key's window, and when the window ends."""

    left: int
    until: float


class RateLimits:
    """`per_minute` requests a key and window of one minute, which its first request begins.

    namespace: keeps the windows of one limit apart from those of another.
    """

    def __init__(
        self, engine: Engine, clock: Clock, per_minute: int, namespace: str = "LIMITER"
    ) -> None:
        self._storage = DatabaseStorage(engine, clock)
        self._limiter = FixedWindowRateLimiter(self._storage)
        self._limit = RateLimitItemPerMinute(per_minute, namespace=namespace)
        self._share = max(1, min(per_minute // SHARES, LARGEST_SHARE))
        self._clock = clock
        self._shares: dict[str, _Share] = {}
        self._lock = Lock()

    def wait(self, key_id: str) -> float:
        """Takes one request; 0, or the seconds after which the key may ask again. Unavailable."""
        now = self._clock.now().timestamp()
        with self._lock:
            share = self._shares.get(key_id)
            if share is not None and 0 < share.until - now <= LATEST * self._limit.get_expiry():
                if share.left > 0:
                    share.left -= 1
                    return 0.0
                if share.left < 0:
                    return share.until - now
        return self._take_share(key_id, now)

    def _take_share(self, key_id: str, now: float) -> float:
        """Takes a share; left = −1 marks a window that is used up."""
        allowed = self._limiter.hit(self._limit, key_id, cost=self._share)
        until = self._storage.get_expiry(self._limit.key_for(key_id))
        with self._lock:
            present = self._shares.get(key_id)
            left = present.left if present is not None and present.until == until else 0
            self._shares[key_id] = _Share(max(left, 0) + self._share - 1 if allowed else -1, until)
        return 0.0 if allowed else max(0.0, until - now)
