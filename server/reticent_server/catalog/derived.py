# SPDX-License-Identifier: Apache-2.0
"""`derive` of the schema file: texts by which columns are computed from others (formula.derived
reads them)."""

from collections.abc import Collection, Mapping
from math import isfinite

from reticent_server.catalog.recodes import COLUMN_NAME, column_error
from reticent_server.domain.derived import DerivedText
from reticent_server.domain.schema import MAX_TEXT
from reticent_server.errors import CuratorError

_SHAPE = '`derive` must be a mapping of names to texts, such as income_k: "income / 1000"'
_KEYS = {"formula", "lower", "upper"}


def read_derived(value: object, columns: Collection[str]) -> tuple[DerivedText, ...]:
    """The declared texts. columns: names that are taken. Raises CuratorError naming the column."""
    if not isinstance(value, Mapping):
        raise CuratorError(f"{_SHAPE}.")
    return tuple(_derived(name, body, columns) for name, body in value.items())


def _derived(name: object, body: object, columns: Collection[str]) -> DerivedText:
    if not isinstance(name, str) or not COLUMN_NAME.fullmatch(name):
        raise CuratorError(f"{_SHAPE}; {str(name)[:MAX_TEXT]!r} cannot be a column's name.")
    if name in columns:
        raise column_error(
            name, "it is declared under `columns`, too; give the derived one another name"
        )
    declared = {"formula": body} if isinstance(body, str) else body
    if not isinstance(declared, Mapping) or not set(declared) <= _KEYS:
        raise column_error(name, "write a text, or {formula: text, lower: …, upper: …}")
    text = declared.get("formula")
    if not isinstance(text, str) or not text.strip():
        raise column_error(name, 'formula must be a quoted text, such as "income / 1000"')
    lower, upper = (_bound(name, key, declared.get(key)) for key in ("lower", "upper"))
    return DerivedText(name, text.strip(), lower, upper)


def _bound(name: str, key: str, value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise column_error(name, f"{key} must be a number, such as 0, -1.5 or 1.0e+6")
    return float(value)
