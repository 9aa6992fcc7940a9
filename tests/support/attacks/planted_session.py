# SPDX-License-Identifier: Apache-2.0
"""A whole session in a process of its own, while everything in reach of a cell tries to tell it.

    python -m support.attacks.planted_session DIRECTORY [naked]

Every fault quotes the cells that it sees: in exceptions, warnings, log records, dying threads. The
replies and metrics go to standard output, the log to standard error. naked: without this project's
guards, as a check that the faults do quote.
"""

import asyncio
import gc
import json
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import structlog

from reticent_server.api.curator import make_curator_application
from reticent_server.api.logs import configure_logging, silence
from reticent_server.domain.roles import STAFF
from reticent_server.engine.local import LocalEngine
from reticent_server.kinds.mean import plan as mean
from reticent_server.mechanisms import registry
from reticent_server.pipeline.services import Services
from reticent_server.vault import readers
from support.installations.small import Api, Installation, opened, request_body

PLANTED = "4711081"
MEAN = {"kind": "mean", "column": "y"}
QUERIES: list[dict[str, Any]] = [
    {"kind": "count", "where": f"y > 7.{PLANTED}"},
    MEAN,
    {"kind": "linear_regression", "formula": "y ~ x"},
    {"kind": "mean", "column": PLANTED},
    {"kind": "linear_regression", "formula": f"y ~ x + {PLANTED}"},
]


def raising(text: str) -> None:
    raise OverflowError(text)


def warning(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)


def library_record(text: str) -> None:
    logging.getLogger("sqlalchemy.engine").error("a value: %s", text, exc_info=ValueError(text))


def own_record(text: str) -> None:
    log = structlog.get_logger()
    log.error("computation_failed", cell=text, error=text, status=float(f"7.{PLANTED}"))
    log.error(f"the cell is {text}")


def dying_thread(text: str) -> None:
    thread = threading.Thread(target=raising, args=(text,))
    thread.start()
    thread.join()


def forgotten_task(text: str) -> None:
    async def forget() -> None:
        async def fail() -> None:
            raising(text)

        asyncio.get_running_loop().create_task(fail())
        await asyncio.sleep(0)

    asyncio.run(forget())
    gc.collect()


class Unraisable:
    def __init__(self, text: str) -> None:
        self._text = text

    def __del__(self) -> None:
        raising(self._text)


def unraisable(text: str) -> None:
    Unraisable(text)


TELLERS: list[Callable[[str], None]] = [
    raising,
    warning,
    library_record,
    own_record,
    dying_thread,
    forgotten_task,
    unraisable,
]


def _before(owner: Any, name: str, tell: Callable[..., None]) -> Any:
    """Patches a function so that its arguments are told before it runs."""
    real = getattr(owner, name)

    def telling(*args: Any, **kwargs: Any) -> Any:
        tell(*args)
        return real(*args, **kwargs)

    return mock.patch.object(owner, name, telling)


def faults(teller: Callable[[str], None]) -> Iterator[Any]:
    """One place after the other that sees cells, with a teller in it."""

    def totals(_part: Any, total: Any) -> None:
        teller(f"7.{PLANTED} in a sum near {total.unwrap()}")

    def cells(*args: Any) -> None:
        block = next(a for a in args if hasattr(a, "columns"))
        teller(" ".join(f"{v:.7f}" for c in block.columns.values() for v in c))

    def batch(*args: Any) -> None:
        teller(str([a.to_pydict() for a in args if hasattr(a, "to_pydict")]))

    yield _before(registry, "release", totals)
    yield _before(registry, "encode_all", lambda _p, c, *_: teller(f"{c[0]!r} 7.{PLANTED}"))
    yield _before(readers, "_shape", batch)
    yield _before(LocalEngine, "_released", lambda _e, table, _s: teller(_everything(table)))
    yield _before(mean._MeanMap, "__call__", cells)


def _everything(table: Any) -> str:
    return str(next(table._reader.batches(["y"])).unwrap().to_pydict())


def tell_all(services: Services, installation: Installation) -> Iterator[str]:
    """Everything that somebody outside gets to see."""
    api = Api(services, installation.keys["ana"])
    for teller in TELLERS:
        for fault in faults(teller):
            services.engine._cache = type(services.engine._cache)(1 << 24)  # cold
            with fault:
                reply = api.post("/v1/releases", request_body(MEAN, epsilon=0.01))
                yield f"{reply.status_code} {reply.text} {dict(reply.headers)}"
    for query in QUERIES:
        for path in ("/v1/plans", "/v1/releases"):
            reply = api.post(path, request_body(query, epsilon=0.01))
            yield reply.text if PLANTED not in json.dumps(reply.json().get("query", "")) else ""
    for path in ("/v1/budget", "/v1/datasets", f"/v1/releases/{PLANTED}", f"/{PLANTED}?{PLANTED}"):
        yield api.get(path).text
    yield metrics(services)


def metrics(services: Services, name: str = "cura") -> str:
    """What a new curator of that name is told."""
    key = services.access.add_curator(name, STAFF, by="t")

    async def ask() -> str:
        transport = httpx.ASGITransport(make_curator_application(services))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            reply = await client.get("/metrics", headers={"Authorization": f"Bearer {key}"})
            return reply.text

    return asyncio.run(ask())


def main(directory: str, naked: bool) -> None:
    if not naked:
        configure_logging("debug")
        silence()
    installation = Installation(Path(directory), json.loads((Path(directory) / "keys").read_text()))
    with opened(installation.settings) as services:
        for told in tell_all(services, installation):
            print(told)


if __name__ == "__main__":
    main(sys.argv[1], naked=len(sys.argv) > 2)
