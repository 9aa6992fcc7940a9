# SPDX-License-Identifier: Apache-2.0
"""An application that a thread of the tests' process serves.

Its events go to a list. structlog prints them to standard output by default, which pytest catches
in a text stream, and a text stream is not made for several threads: a test that read what it had
caught while a request was being logged ended its process, by luck, with a segmentation fault.
"""

import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from fastapi import FastAPI
from structlog.testing import capture_logs


@dataclass(frozen=True)
class InThread:
    """url: on the loopback. events: that were logged since it was there, in a list that grows."""

    url: str
    events: Sequence[Mapping[str, Any]]


def loopback() -> socket.socket:
    """A listening socket on a port that is free."""
    return socket.create_server(("127.0.0.1", 0))


def url_of(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def in_thread(app: FastAPI, listener: socket.socket | None = None) -> Iterator[InThread]:
    """Serves until the end of the block. listener: where the port has to be known before."""
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, ws="none"))
    with listener or loopback() as listening, capture_logs() as events:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield InThread(url_of(listening), events)
        finally:
            server.should_exit = True
            thread.join()
