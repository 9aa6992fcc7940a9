# SPDX-License-Identifier: Apache-2.0
"""What the client sends and gets for one query of every kind: recorded, and kept for later
versions.

`make contract` writes the files in tests/fixtures/contract/replies; tests of later versions replay
them.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

import reticent
from support.installations.small import Api, Installation, opened
from support.kinds.examples import FIELDS

STORED = Path(__file__).parents[2] / "fixtures/contract/replies"
METHODS = {"hypothesis_test": "test"}
"""Methods of another name than their kind's."""

EPSILON = 10.0
TRIALS = 20  # of a query that may have No Reply, which says little about what is read


@dataclass(frozen=True, slots=True)
class Exchange:
    """request: the body of POST /v1/releases. reply: the release. read_as: the client's class for
    it. columns: of its data frame.
    """

    request: dict[str, Any]
    reply: dict[str, Any]
    read_as: str
    columns: list[str]


class InProcess(httpx.BaseTransport):
    """The client's way to an application in this process. sent: bodies, in order."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.sent: list[bytes] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        content = request.read()
        self.sent.append(content)
        headers = {k: v for k, v in request.headers.items() if k not in {"host", "content-length"}}
        path = request.url.raw_path.decode("ascii")
        reply = self._api.send(request.method, path, content=content, headers=headers)
        return httpx.Response(reply.status_code, headers=reply.headers, content=reply.content)


def rich(installation: Installation) -> str:
    """The key of an analyst who has enough for every kind, and for many tries."""
    return installation.analyst("rich", epsilon=900, delta=5e-3, rule="zcdp")


def exchanges(installation: Installation) -> Iterator[tuple[str, Exchange]]:
    """One of every kind, by kind, at `EPSILON`."""
    key = rich(installation)
    with opened(installation.settings) as services:
        for kind, fields in FIELDS.items():
            transport = InProcess(Api(services, None))
            client = reticent.Client("http://test", key=key, transport=transport, progress=False)
            with client:
                ask = getattr(client.dataset("people"), METHODS.get(kind, kind))
                answers = (ask(epsilon=EPSILON, **fields) for _ in range(TRIALS))
                answer = next(a for a in answers if not isinstance(a, reticent.NoReply))
            columns = [str(name) for name in answer.to_frame().columns]
            request = json.loads(transport.sent[-1])
            yield kind, Exchange(request, dict(answer.release), type(answer).__name__, columns)


def store(installation: Installation) -> None:
    """Writes them."""
    STORED.mkdir(parents=True, exist_ok=True)
    for kind, exchange in exchanges(installation):
        text = json.dumps(asdict(exchange), indent=1, ensure_ascii=False)
        (STORED / f"{kind}.json").write_text(text + "\n", "utf-8")


def stored() -> dict[str, Exchange]:
    """Those of the last version, by kind."""
    return {
        path.stem: Exchange(**json.loads(path.read_text("utf-8"))) for path in STORED.glob("*.json")
    }
