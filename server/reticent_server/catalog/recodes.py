# SPDX-License-Identifier: Apache-2.0
"""The parts of a column's declaration that say what the file's texts stand for."""

import re
from collections import Counter
from collections.abc import Mapping
from datetime import date

from reticent_server.domain.dates import ISO_DATES, date_days, date_format_error
from reticent_server.domain.schema import MAX_TEXT
from reticent_server.errors import CuratorError

MAX_LEVELS = 1024  # levels of a column: the most cells of a table that one column may give
# texts of the file behind one column's levels: keeps a stored schema below a megabyte
MAX_TEXTS = 10_000

COLUMN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,63}")

Codes = tuple[tuple[str, float], ...]
Declared = Mapping[object, object]


def read_levels(name: str, declared: Declared) -> tuple[tuple[str, ...], Codes, float | None]:
    """The levels, the file's texts with their levels' positions (none: the levels themselves), and
    the position of the catch-all. Raises CuratorError naming the column."""
    value = declared.get("levels")
    texts: dict[str, tuple[str, ...]] | None = None
    if isinstance(value, Mapping):
        texts = _merged(name, value)
        levels = tuple(texts)
    else:
        levels = texts_in(name, "levels", value, MAX_LEVELS)
    other = _other(name, declared)
    levels += (other,) if other is not None and other not in levels else ()
    _check_levels(name, levels)
    at = {level: float(position) for position, level in enumerate(levels)}
    if texts is not None:
        codes = tuple((text, at[level]) for level, read in texts.items() for text in read)
    else:
        # A catch-all that is no declared text of the file has no text of its own.
        codes = () if other is None else tuple(at.items())
    return levels, codes, None if other is None else at[other]


def read_words(name: str, declared: Declared) -> Codes:
    """The texts of the file that mean true and false; () for the usual words. Raises
    CuratorError."""
    given = [key for key in ("true", "false") if key in declared]
    if not given:
        return ()
    if len(given) == 1:
        raise column_error(name, "give both `true` and `false`, each a list of quoted texts")
    true, false = (texts_in(name, key, declared[key], MAX_TEXTS) for key in ("true", "false"))
    _distinct(name, (*true, *false))
    return (*((text, 1.0) for text in true), *((text, 0.0) for text in false))


def texts_in(name: str, key: str, value: object, most: int) -> tuple[str, ...]:
    """A non-empty list of distinct quoted texts, without blanks at their ends. Raises
    CuratorError."""
    if not isinstance(value, list) or not value:
        raise column_error(name, f'{key} must be a list of quoted texts, such as ["0", "1"]')
    if len(value) > most:
        raise column_error(name, f"{key} may have at most {most} entries")
    for entry in value:
        _check_text(name, key, entry)
    for entry, times in Counter(value).items():
        if times > 1:
            raise column_error(name, f"{entry!r} appears twice in {key}; keep one")
    return tuple(value)


def read_date(name: str, key: str, value: object) -> float:
    """A bound of a column of dates, in days. Raises CuratorError naming the column."""
    try:
        return date_days(value.isoformat() if type(value) is date else str(value))
    except ValueError:
        raise column_error(name, f'{key} must be a date, such as "2020-01-31"') from None


def read_format(name: str, declared: Declared) -> str:
    """The format of a date's texts. Raises CuratorError naming the column."""
    value = declared.get("format", ISO_DATES)
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise column_error(name, 'format must be a quoted text, such as "%d.%m.%Y"')
    if wrong := date_format_error(value):
        raise column_error(name, wrong)
    return value


def column_error(name: str, problem: str) -> CuratorError:
    """An error of a schema file that names its column. problem: without a full stop."""
    return CuratorError(f"Column {name}: {problem}.")


def _merged(name: str, value: Declared) -> dict[str, tuple[str, ...]]:
    """{level: texts of the file}."""
    if len(value) > MAX_LEVELS:
        raise column_error(name, f"levels may have at most {MAX_LEVELS} entries")
    merged: dict[str, tuple[str, ...]] = {}
    for level, texts in value.items():
        _check_text(name, "levels", level)
        read = [texts] if isinstance(texts, str) else texts
        merged[str(level)] = texts_in(name, f"levels: {level}", read, MAX_TEXTS)
    every = [text for texts in merged.values() for text in texts]
    if len(every) > MAX_TEXTS:
        raise column_error(name, f"levels may have at most {MAX_TEXTS} texts of the file")
    _distinct(name, every)
    return merged


def _other(name: str, declared: Declared) -> str | None:
    if "other" not in declared:
        return None
    other = declared["other"]
    _check_text(name, "other", other)
    return str(other)


def _check_levels(name: str, levels: tuple[str, ...]) -> None:
    if "" in levels:
        raise column_error(name, "a level is empty; name it, or list it under `missing`")
    if len(levels) < 2:
        raise column_error(name, "levels must have at least two entries")
    if len(levels) > MAX_LEVELS:
        raise column_error(name, f"levels may have at most {MAX_LEVELS} entries, with `other`")


def _check_text(name: str, key: str, entry: object) -> None:
    if not isinstance(entry, str):
        raise column_error(name, f"put quotes around the entry {str(entry)[:MAX_TEXT]} of {key}")
    if len(entry) > MAX_TEXT or entry != entry.strip() or not entry.isprintable():
        raise column_error(
            name,
            f"an entry of {key} has blanks at an end, a control character "
            f"or more than {MAX_TEXT} characters",
        )


def _distinct(name: str, texts: tuple[str, ...] | list[str]) -> None:
    for text, times in Counter(texts).items():
        if times > 1:
            raise column_error(name, f"{text!r} is read as two values; keep one")
