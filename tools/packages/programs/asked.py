# SPDX-License-Identifier: Apache-2.0
"""asked.py URL [PATH…] [released=ID]: pages and files of the server, then a fit over HTTP, or the
one that was released under ID; prints its id and slope. The standard library alone.
"""

import json
import os
import sys
import time
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from uuid import uuid4

PAGES = ("/readyz", "/workbench/sign-in", "/verify", "/openapi.json")
ASKED = {
    "dataset": "people",
    "query": {"kind": "linear_regression", "formula": "y ~ x"},
    "privacy": {"epsilon": 8.0},
}

url, *others = sys.argv[1:]
released = [word.removeprefix("released=") for word in others if word.startswith("released=")]


def ask(path: str, body: Any = None) -> Any:
    headers = {"Authorization": f"Bearer {os.environ['RETICENT_KEY']}"}
    if body is not None:
        headers["Content-Type"] = "application/json"
        headers["Idempotency-Key"] = str(uuid4())
    data = None if body is None else json.dumps(body).encode()
    return json.loads(opened(Request(url + path, data, headers)))


def opened(request: Request) -> bytes:
    """The reply; 503 says that the same may be asked again, as a busy machine's server does."""
    for pause in (1, 2, 4, 8, 16):  # seconds
        try:
            with urlopen(request, timeout=120) as reply:
                return bytes(reply.read())
        except HTTPError as error:
            if error.code != 503:
                raise
            time.sleep(pause)
    raise SystemExit(f"{request.full_url} is not available")


for page in (*PAGES, *(word for word in others if word.startswith("/"))):
    assert len(opened(Request(url + page))) > 10, page
release = ask(f"/v1/releases/{released[0]}") if released else ask("/v1/releases", ASKED)
assert release["status"] == "reply", release
slope = release["result"]["coefficients"][release["result"]["terms"].index("x")]
assert abs(slope - 2) < 0.5, slope
assert ask(f"/v1/releases/{release['id']}") == release
print(json.dumps({"id": release["id"], "slope": slope}))
