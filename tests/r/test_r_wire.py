# SPDX-License-Identifier: Apache-2.0
"""R's connection: one for each process, replies that are answers, Ctrl-C, and no key in a file."""

import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from support.processes import r_language

R = Path(__file__).resolve().parents[2] / "r" / "R"
START = """\
for (file in list.files("{folder}", full.names = TRUE)) source(file)
client <- reticent_client("{url}", key = "rk_secret", retries = 2)
houses <- structure(list(client = client, name = "houses"), class = "reticent_dataset")
asked <- function(i, ...) private_mean(houses, i, epsilon = 1, ...)
"""
FORKS = """\
asked("c0")
cat(is.environment(process), "\\n")
found <- parallel::mclapply(1:6, function(i) asked(paste0("c", i))$query$column, mc.cores = 6)
cat(unlist(found), "\\n")
"""
ANOTHER = """\
told <- tryCatch(asked("other", idempotency_key = "k1"), error = conditionMessage)
cat(told, "\\n")
told <- tryCatch(asked("key", idempotency_key = "k1"), error = conditionMessage)
cat(told, "\\n")
"""
INTERRUPTED = """\
cat("ready\\n")
tryCatch(for (i in 1:6) asked("slow"), interrupt = function(stopped) cat("interrupted\\n"))
"""
STORED = """\
file <- tempfile()
saveRDS(list(asked("c1"), houses, client), file, compress = FALSE)
bytes <- readBin(file, "raw", file.size(file))
cat(length(grepRaw("rk_secret", bytes)), length(grepRaw("{url}", bytes, fixed = TRUE)), "\\n")
again <- readRDS(file)
further <- function() update.reticent_fit(again[[1]], column = "c2", epsilon = 1)$query$column
cat(further(), "\\n")
process$keys <- list()
cat(tryCatch(further(), error = conditionMessage), "\\n")
"""


class Answering(BaseHTTPRequestHandler):
    """Answers a mean of a column, on connections that it keeps open. `other` and `key` have the
    reply of another question, or of another key; `slow` waits until `going_on` is set.
    """

    protocol_version = "HTTP/1.1"
    asked: list[str]
    began: threading.Event
    going_on: threading.Event

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        query, key = body["query"], self.headers["Idempotency-Key"]
        self.asked.append(query["column"])
        if query["column"] == "slow":
            self.began.set()
            self.going_on.wait(r_language.SECONDS)
        if query["column"] == "other":
            query = query | {"column": "c1"}
        document = {"id": "1", "dataset": "houses", "version": 1, "status": "reply"}
        document |= {"query": query, "charged": {"epsilon": 1, "delta": 0}, "guarantee": {}}
        document |= {"result": {"value": 1, "coefficients": None, "n": 5}}
        content = json.dumps(document).encode()
        self.send_response(201)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Idempotency-Key", "k2" if query["column"] == "key" else key)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def answering() -> Iterator[str]:
    Answering.asked, Answering.began = [], threading.Event()
    Answering.going_on = threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        Answering.going_on.set()
        server.shutdown()
        thread.join()


def command(url: str, program: str) -> list[str]:
    text = (START + program).replace("{folder}", str(R)).replace("{url}", url)
    return ["Rscript", "--vanilla", "-e", text]


def printed(program: str) -> list[str]:
    r_language.need()
    with answering() as url:
        done = subprocess.run(
            command(url, program),
            capture_output=True,
            text=True,
            timeout=r_language.SECONDS,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


@pytest.mark.audit
def test_forked_processes_have_connections_of_their_own() -> None:
    """The reply of a shared one would be refused, or never come."""
    assert printed(FORKS)[-2].split() == [f"c{i}" for i in range(1, 7)]


@pytest.mark.audit
def test_a_reply_to_another_question_is_refused() -> None:
    other, key, _ = printed(ANOTHER)
    for told in (other, key):
        assert "another question" in told
        assert 'idempotency_key = "k1"' in told


@pytest.mark.audit
def test_an_interrupt_ends_a_loop_of_questions() -> None:
    """Nothing is asked again, and nothing further."""
    r_language.need()
    with answering() as url:
        process = subprocess.Popen(command(url, INTERRUPTED), stdout=subprocess.PIPE, text=True)
        try:
            while not Answering.began.wait(0.1):
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            while process.poll() is None and len(Answering.asked) == 1:
                time.sleep(0.05)
            Answering.going_on.set()
            out, _ = process.communicate(timeout=r_language.SECONDS)
        finally:
            process.kill()
    assert "interrupted" in out
    assert Answering.asked == ["slow"]


@pytest.mark.audit
def test_no_file_holds_the_key() -> None:
    """A fit, a data set and a client keep the address; the process has the key while it lives."""
    counts, again, told, _ = printed(STORED)
    assert counts.split() == ["0", "1"]
    assert again.strip() == "c2"
    assert "Give reticent_client() a key" in told
