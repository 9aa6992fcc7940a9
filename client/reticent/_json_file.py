# SPDX-License-Identifier: Apache-2.0
"""JSON that somebody has kept in a file: one sentence for whatever is none."""

import json
from os import PathLike
from pathlib import Path
from typing import Any

from reticent._errors import InvalidQuery


def json_of(path: str | PathLike[str], what: str) -> Any:
    """The value of a file's JSON text. what: it should hold, in words. Raises OSError, InvalidQuery
    for a text that is no JSON, has a member twice, is nested too deeply or has a number of
    thousands of digits.
    """
    try:
        return json.loads(Path(path).read_text("utf-8"), object_pairs_hook=_members)
    except RecursionError:
        reason = "it is nested too deeply"
    except ValueError as error:  # UnicodeDecodeError is one
        reason = str(error)
    raise InvalidQuery(f"{path} cannot be read as {what}: {reason}.")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("it has a member twice")
    return members
