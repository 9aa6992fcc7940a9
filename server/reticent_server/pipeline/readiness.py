# SPDX-License-Identifier: Apache-2.0
"""Whether a process could answer now: whether its databases do, and whether the rows of a data set
can be read.

Anybody may ask, again and again, so each database and each version is asked at most once a second;
one that hangs is away, and is not asked again before it has answered.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillAsked
from functools import partial
from threading import Lock

from reticent_server.domain.clock import Clock
from reticent_server.errors import Damaged, SourceAway

FRESH_SECONDS = 1.0
"""How long what a database has said is believed."""

PATIENCE_SECONDS = 3.0
"""After which a database that does not say anything is away; a load balancer's own limit is
longer."""


SOURCES_AT_ONCE = 4
"""Versions that are asked at a time: one whose database hangs holds up no other."""


class Readiness:
    """parts: by name, a function that raises where the part does not answer. probe: raises
    SourceAway where the rows of the version of an id cannot be read; it reads none."""

    def __init__(
        self,
        clock: Clock,
        parts: Mapping[str, Callable[[], object]],
        probe: Callable[[str], object] = lambda _version_id: None,
    ) -> None:
        self._clock = clock
        self._parts = dict(parts)
        self._probe = probe
        self._asked: dict[str, tuple[float, Future[object]]] = {}
        self._askers = ThreadPoolExecutor(len(self._parts), thread_name_prefix="readiness")
        self._probers = ThreadPoolExecutor(SOURCES_AT_ONCE, thread_name_prefix="sources")
        self._lock = Lock()

    def require_source(self, version_id: str) -> None:
        """Raises SourceAway where the rows of a version cannot be read now."""
        answer = self._answer(version_id, partial(self._probe, version_id), self._probers)
        failure = self._failure(answer, self._clock.monotonic() + PATIENCE_SECONDS)
        if failure is not None:
            raise SourceAway(failure.cause if isinstance(failure, SourceAway) else "no_answer")

    def away(self) -> Sequence[str]:
        """The parts that do not answer, by name. Raises Damaged where one is."""
        answers = {name: self._answer(name, ask, self._askers) for name, ask in self._parts.items()}
        end = self._clock.monotonic() + PATIENCE_SECONDS
        failures = {name: self._failure(answer, end) for name, answer in answers.items()}
        for failure in failures.values():
            if isinstance(failure, Damaged):
                raise failure
        return [name for name, failure in failures.items() if failure is not None]

    def _answer(
        self, name: str, ask: Callable[[], object], askers: ThreadPoolExecutor
    ) -> "Future[object]":
        """The last answer, where it is fresh or still to come; else a new one."""
        with self._lock:
            now = self._clock.monotonic()
            at, answer = self._asked.get(name, (0.0, None))
            if answer is None or (answer.done() and now - at >= FRESH_SECONDS):
                answer = askers.submit(ask)
                self._asked[name] = now, answer
            return answer

    def _failure(self, answer: "Future[object]", end: float) -> BaseException | None:
        """Why a part does not answer; None where it has."""
        try:
            return answer.exception(max(0.0, end - self._clock.monotonic()))
        except StillAsked as still:
            return still

    def close(self) -> None:
        """Waits for no answer."""
        for askers in (self._askers, self._probers):
            askers.shutdown(wait=False, cancel_futures=True)
