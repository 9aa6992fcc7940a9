# SPDX-License-Identifier: Apache-2.0
"""What a full server makes of R's calls: plans and releases come again when they are told to, and a
release is the same one.
"""

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from support.processes import r_language

R = Path(__file__).resolve().parents[2] / "r" / "R"
ASKED = """\
for (file in list.files("{folder}", full.names = TRUE)) source(file)
client <- reticent_client("{url}", key = "k", retries = 2)
invisible(call_server(client, "POST", "/v1/plans", list(dataset = "d")))
invisible(call_server(client, "POST", "/v1/releases", list(dataset = "d"), "once"))
failed <- tryCatch(
  call_server(client, "POST", "/v1/plans", list(dataset = "full")), error = conditionMessage)
cat(failed)
again <- tryCatch(
  call_server(client, "POST", "/v1/requests", list(dataset = "d")), error = conditionMessage)
cat(again)
"""


class FullServer(BaseHTTPRequestHandler):
    """Refuses the first call of each path, and whatever is about `full`; `asked` has the calls,
    with their idempotency keys.
    """

    asked: list[tuple[str, str | None]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        first = self.path not in {path for path, _ in self.asked}
        self.asked.append((self.path, self.headers["Idempotency-Key"]))
        refused = first or body["dataset"] == "full"
        said = {"code": "rate_limited", "title": "Too many", "detail": "Come again."}
        content = json.dumps(said if refused else {"id": "1"}).encode()
        self.send_response(429 if refused else 200)
        if refused:
            self.send_header("Retry-After", "0")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def full_server() -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    FullServer.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), FullServer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", FullServer.asked
        server.shutdown()
        thread.join()


@pytest.mark.audit
def test_who_is_told_to_come_again_does() -> None:
    """Of what could be charged twice, nothing is sent twice without a key."""
    r_language.need()
    with full_server() as (url, asked):
        done = subprocess.run(
            ["Rscript", "--vanilla", "-e", ASKED.format(folder=R, url=url)],
            capture_output=True,
            text=True,
            timeout=r_language.SECONDS,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Come again.") == 2
    plans, releases = [("/v1/plans", None)], [("/v1/releases", "once")]
    assert asked == 2 * plans + 2 * releases + 3 * plans + [("/v1/requests", None)]
