# SPDX-License-Identifier: Apache-2.0
"""Results of kinds as JSON-able values."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any


def result_json(result: Any) -> Any:
    """A result's JSON-able value. A field that may be absent (its default is None) is left out
    where it is None.
    """
    if hasattr(type(result), "__dataclass_fields__"):
        return {
            f.name: result_json(value)
            for f in fields(result)
            if (value := getattr(result, f.name)) is not None or f.default is MISSING
        }
    if isinstance(result, Mapping):
        return {name: result_json(value) for name, value in result.items()}
    if isinstance(result, list | tuple):
        return [result_json(value) for value in result]
    return result
