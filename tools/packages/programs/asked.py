# SPDX-License-Identifier: Apache-2.0
"""asked.py URL [PATH…] [released=ID]: pages and files of the server, then a fit over HTTP, or the one that was released
under ID; prints its id and slope. The standard library alone."""

import json
import os
import sys
from typing import Any
from urllib.request import Request, urlopen

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
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url + path, data, headers), timeout=120) as reply:
        return json.load(reply)


for page in (*PAGES, *(word for word in others if word.startswith("/"))):
    with urlopen(url + page, timeout=60) as reply:
        assert len(reply.read()) > 10, page  # another status raises
release = ask(f"/v1/releases/{released[0]}") if released else ask("/v1/releases", ASKED)
assert release["status"] == "reply", release
slope = release["result"]["coefficients"][release["result"]["terms"].index("x")]
assert abs(slope - 2) < 0.5, slope
assert ask(f"/v1/releases/{release['id']}") == release
print(json.dumps({"id": release["id"], "slope": slope}))
