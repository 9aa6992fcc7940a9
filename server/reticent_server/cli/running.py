# SPDX-License-Identifier: Apache-2.0
"""Runs applications on listening sockets: one in the main thread, one beside it."""

import gc
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from reticent_server.api.connections import connections
from reticent_server.cli.listening import Tls

if TYPE_CHECKING:
    from fastapi import FastAPI

GRACE_SECONDS = 30


class _Server(uvicorn.Server):
    """Says when it has started."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._tell = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Uvicorn's start; then the terminal hears that the server answers.

        What is there by now stays: a collection that looks through all of it takes a tenth of a
        second, in which no reply comes on time.
        """
        await super().startup(sockets)
        gc.collect()
        gc.freeze()
        if self.started:
            self._tell()


def run(
    application: "FastAPI",
    listener: socket.socket,
    tls: Tls | None = None,
    started: Callable[[], None] = lambda: None,
) -> None:
    """Serves on a listening socket; a signal ends it after the requests that are being answered."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)  # uvicorn hands the signal on to these when it has ended
    _Server(_config(application, tls), started).run(sockets=[listener])


@contextmanager
def running_beside(
    application: "FastAPI", listener: socket.socket, tls: Tls | None
) -> Iterator[None]:
    """Serves in a thread while the block runs."""
    server = uvicorn.Server(_config(application, tls))
    thread = Thread(target=server.run, args=([listener],), name="curator", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(GRACE_SECONDS)


def _config(application: "FastAPI", tls: Tls | None) -> uvicorn.Config:
    """proxy_headers off: nothing here asks who the caller's address is, so nobody can forge it."""
    seconds: int = application.state.services.settings.max_body_seconds
    return uvicorn.Config(
        application,
        http=connections(seconds),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=GRACE_SECONDS,
        ssl_certfile=None if tls is None else tls.certificate,
        ssl_keyfile=None if tls is None else tls.key,
    )


def _end(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)
