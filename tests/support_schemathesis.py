"""Hooks of schemathesis: most requests are about a data set that there is."""

from typing import Any

import schemathesis


@schemathesis.hook
def map_body(_context: Any, body: Any) -> Any:
    if isinstance(body, dict) and isinstance(body.get("dataset"), str) and len(body["dataset"]) % 4:
        body["dataset"] = "people"
    return body
