# SPDX-License-Identifier: Apache-2.0
"""`reticent serve` that lives again and again, and kills itself where it is told.

    main(ORDERS)

prints "at PORT" and reads lines "POINT NTH" from a named pipe: a process is forked that serves
until the nth pass of the point, where it kills itself (SIGKILL); "calm 1" serves until a signal. It
prints "up PID" and "down STATUS". One listening socket serves all lives, so that a client sees
broken connections only.
"""

import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import event

from reticent_server.api import application, middleware
from reticent_server.api.logs import configure_logging
from reticent_server.app import build_services, create_app
from reticent_server.chain import repository as chain
from reticent_server.cli.listening import listen
from reticent_server.cli.running import run
from reticent_server.console import application as console_application
from reticent_server.engine.local import LocalEngine
from reticent_server.ledger import repository
from reticent_server.ledger.service import Ledger
from reticent_server.mechanisms import registry
from reticent_server.pipeline.schedule import ReleaseQueue
from reticent_server.pipeline.services import Services
from reticent_server.settings import Settings

IMPORTED = (console_application,)
"""What a life would else import by itself, each time."""

BEFORE = ("planned", "debited", "chained", "committing")
"""Points before the commit of a charge, in order."""

AFTER = ("committed", "computing", "computed", "settling", "settled", "replying")
"""Points after it, in order."""

QUEUED = ("queued", "beginning", "begun")
"""Points of a release that is answered later: charged, and before and after its turn is taken."""


class Trap:
    """Kills the process at the nth call."""

    def __init__(self, nth: int) -> None:
        self._left = nth

    def __call__(self, *_: object) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def arm(point: str, trap: Trap, services: Services) -> None:
    """Sets the trap at a point."""
    if point == "committing":
        event.listen(services.access._engine, "commit", trap)
    elif point == "replying":
        middleware.Edge = _half_replying(middleware.Edge, trap)  # type: ignore[misc]
    elif point in _FUNCTIONS:
        owner, name, before = _FUNCTIONS[point]
        setattr(owner, name, _trapped(getattr(owner, name), trap, before=before))


_FUNCTIONS: dict[str, tuple[Any, str, bool]] = {
    "planned": (Ledger, "reserve", True),
    "debited": (repository, "spend", False),
    "chained": (chain, "append", False),
    "committed": (Ledger, "reserve", False),
    "queued": (ReleaseQueue, "put", False),
    "beginning": (Ledger, "begin", True),
    "begun": (Ledger, "begin", False),
    "computing": (registry, "release", True),
    "computed": (LocalEngine, "execute", False),
    "settling": (repository, "settle", False),
    "settled": (Ledger, "settle", False),
}


def _trapped(function: Callable[..., Any], trap: Trap, *, before: bool) -> Callable[..., Any]:
    def trapped(*args: Any, **kwargs: Any) -> Any:
        if before:
            trap()
        result = function(*args, **kwargs)
        if not before:
            trap()
        return result

    return trapped


def _half_replying(edge: Any, trap: Trap) -> Any:
    """An edge that sends half of a release's body before the trap."""

    class HalfReplying(edge):  # type: ignore[misc]
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            async def halving(message: Any) -> None:
                body = message.get("body", b"")
                if scope.get("method") != "POST" or not body:
                    await send(message)
                    return
                middle = len(body) // 2
                await send(message | {"body": body[:middle], "more_body": True})
                trap()
                await send(message | {"body": body[middle:]})

            await super().__call__(scope, receive, halving)

    return HalfReplying


def live(listener: socket.socket, settings: Settings, point: str, nth: int) -> None:
    """One life, in a process of its own."""
    services = build_services(settings)
    arm(point, Trap(nth), services)
    application.Edge = middleware.Edge  # type: ignore[attr-defined]  # where it has been imported to
    run(create_app(services), listener)


def main(orders: str) -> None:
    settings = Settings()
    configure_logging("error")
    listener = listen("127.0.0.1", 0)
    print(f"at {listener.getsockname()[1]}", flush=True)
    with Path(orders).open() as lines:
        for line in lines:
            live_once(listener, settings, *line.split())


def live_once(listener: socket.socket, settings: Settings, point: str, nth: str) -> None:
    """Forks a life, and waits until it has ended."""
    child = os.fork()
    if child == 0:
        live(listener, settings, point, int(nth))
        os._exit(0)
    print(f"up {child}", flush=True)
    print(f"down {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}", flush=True)
