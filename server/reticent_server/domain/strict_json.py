# SPDX-License-Identifier: Apache-2.0
"""JSON texts, strictly: no key twice, so that a text says one thing whoever reads it."""

import json
from typing import Any


def parse(text: str | bytes) -> Any:
    """The value of a JSON text, in UTF-8 where it is bytes. Raises ValueError or RecursionError.

    NaN and Infinity pass: every number of a schema refuses them, by the name of its field.
    """
    read = text.decode("utf-8") if isinstance(text, bytes) else text
    return json.loads(read, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key twice")
    return members
