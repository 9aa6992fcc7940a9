# SPDX-License-Identifier: Apache-2.0
"""A function that replies over HTTP on 127.0.0.1, from a thread of the tests' process."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Reply = tuple[int, Any, list[tuple[str, str]]]
"""Status, what is sent (JSON unless a text), further headers."""
Answer = Callable[[str, str, dict[str, str], Message], Reply]
"""Of a method, a path, the fields of the query or of the form, and the request's headers."""
POLL_SECONDS = 0.05  # between looks for the end: a test waits half of it


@contextmanager
def answering(answer: Answer) -> Iterator[int]:
    """The port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send("GET", urlsplit(self.path).query)

        def do_POST(self) -> None:
            self._send("POST", self.rfile.read(int(self.headers["Content-Length"])).decode())

        def _send(self, method: str, given: str) -> None:
            path = urlsplit(self.path).path
            status, content, headers = answer(method, path, dict(parse_qsl(given)), self.headers)
            body = (content if isinstance(content, str) else json.dumps(content)).encode()
            own = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
            self.send_response(status)
            for name, value in [*headers, *own]:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": POLL_SECONDS})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
