# SPDX-License-Identifier: Apache-2.0
"""Run as a process: adds the demonstration kind to the list, and asks it over HTTP and through the
client.

python session.py DIRECTORY    of a small installation; prints what was learned as one line of JSON
"""

import json
import sys
from pathlib import Path

from kinds.demonstration.kind import KIND
from reticent_server import kinds

kinds.KINDS = (
    *kinds.KINDS,
    KIND,
)  # before anything reads the list: what a line in kinds/__init__.py does

from client_methods import source  # noqa: E402
from release_schema import schema  # noqa: E402
from reticent._reading import read  # noqa: E402
from support.installations.small import Api, Installation, opened, request_body  # noqa: E402


def main() -> None:
    installation = Installation(Path(sys.argv[1]), json.loads(sys.argv[2]))
    with opened(installation.settings) as services:
        api = Api(services, installation.keys["ana"])
        body = request_body({"kind": "share", "where": "x > 0"}, epsilon=2.0)
        plan, release = api.post("/v1/plans", body).json(), api.post("/v1/releases", body).json()
        refused = api.post("/v1/plans", request_body({"kind": "share", "where": 3}, epsilon=2.0))
        document = api.get("/openapi.json").json()
    result = document["components"]["schemas"]["RequestBody"]["properties"]["query"]
    learned = {
        "charged": release["charged"] == plan["cost"],
        "result": release["result"],
        "refused": refused.json()["code"],
        "in the document": "share" in result["discriminator"]["mapping"],
        "in the schema": "share" in json.dumps(schema()),
        "a method": "def share(" in source(),
        "read": read(release).result == release["result"],
    }
    print(json.dumps(learned))


if __name__ == "__main__":
    main()
