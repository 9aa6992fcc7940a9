# SPDX-License-Identifier: Apache-2.0
"""One column's cells in a block of a file → stored float64 values and a mask, or the first fault.

A cell is a text (CSV, and text columns of Parquet) or a typed value (other columns of Parquet).
"""

import re
from dataclasses import dataclass
from math import isnan

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reticent_server.domain.column_kind import ColumnKind
from reticent_server.domain.reading import PLAIN, NumberStyle
from reticent_server.domain.schema import BOOLEAN_TEXTS, Column
from reticent_server.errors import CuratorError
from reticent_server.vault.date_cells import is_temporal, text_days, typed_days
from reticent_server.vault.number_texts import plain_numbers

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_NUMBER_TEXT = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_NUMBER = re.compile(_NUMBER_TEXT, re.ASCII)
_UTF8 = (  # well-formed byte sequences: The Unicode Standard, Table 3-7
    r"\A(?:[\x00-\x7F]|[\xC2-\xDF][\x80-\xBF]|\xE0[\xA0-\xBF][\x80-\xBF]"
    r"|[\xE1-\xEC\xEE\xEF][\x80-\xBF]{2}|\xED[\x80-\x9F][\x80-\xBF]|\xF0[\x90-\xBF][\x80-\xBF]{2}"
    r"|[\xF1-\xF3][\x80-\xBF]{3}|\xF4[\x80-\x8F][\x80-\xBF]{2})*\z"
)
_SHOWN = 40
NAMED = 5
"""Reasons of a column's, and rows of each, that are named: enough to find them, and a message stays
short.
"""

_LOOKED_AT = 10_000
"""Bad cells of a block that are told apart: .1 s of them."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """values: within the bounds, 0 where missing. clipped: how many values were outside."""

    values: FloatArray
    missing: BoolArray
    clipped: int


@dataclass(frozen=True, slots=True)
class Fault:
    """Cells (0-based in the block) that cannot be stored: for each reason its first rows, and how
    many they are.

    At most NAMED reasons of at most NAMED rows, in their order; count: of all bad cells.
    """

    found: tuple[tuple[str, tuple[int, ...], int], ...]
    count: int

    @property
    def index(self) -> int:
        """The first row of the first reason, 0-based in the block."""
        return self.found[0][1][0]

    @property
    def reason(self) -> str:
        """Why the first bad cell cannot be stored."""
        return self.found[0][0]


def encode(
    column: Column, cells: pa.Array, *, strict: bool, numbers: NumberStyle = PLAIN
) -> Encoded | Fault:
    """Encodes a column's cells; with `strict`, a value outside the bounds is a fault. numbers: how
    texts write them.

    Raises CuratorError when the file's type cannot hold this kind of column at all.
    """
    cells = _normal(column, cells)
    missing = _missing(column, cells)
    values, wrong = _values(column, cells, numbers)
    outside = ~missing & ((values < column.lower) | (values > column.upper))
    absent = missing & (not column.may_be_missing)
    faulty = absent | (wrong & ~missing) | (outside & strict)
    if faulty.any():
        return _fault(column, cells, np.flatnonzero(faulty), wrong)
    stored = np.where(missing, 0.0, np.clip(values, column.lower, column.upper))
    return Encoded(stored + 0.0, missing, int(outside.sum()))  # + 0.0: no negative zeros


def _fault(column: Column, cells: pa.Array, faulty: NDArray[np.intp], wrong: BoolArray) -> Fault:
    rows: dict[str, list[int]] = {}
    for i in map(int, faulty[:_LOOKED_AT]):
        reason = _reason(column, cells[i].as_py(), wrong=bool(wrong[i]))
        if reason in rows or len(rows) < NAMED:
            rows.setdefault(reason, []).append(i)
    found = tuple((reason, tuple(at[:NAMED]), len(at)) for reason, at in rows.items())
    return Fault(found, len(faulty))


@dataclass(frozen=True, slots=True)
class Checked:
    """values: within the bounds, whatever the cells hold; bad: cells that cannot be stored."""

    values: FloatArray
    missing: BoolArray
    bad: BoolArray


def check(column: Column, cells: pa.Array) -> Checked:
    """Every cell by itself: the same values as `encode` gives, and no error for any cell.

    For rows that were registered and may have changed since. A block of numbers that all fit takes
    one pass; any other block takes the same few passes, whatever else its cells hold. So one cell
    can make a block slower (1.2 in place of .04 ms a block were measured): how long it takes is
    covered by the reply's deadline, not by this function. Raises CuratorError when the cells' type
    cannot hold this kind of column, which does not depend on a row.
    """
    plain_values = _already_fit(column, cells)
    if plain_values is not None:
        none = np.zeros(len(cells), dtype=np.bool_)
        return Checked(plain_values, none, none)
    cells = plain(cells)
    broken = np.zeros(len(cells), dtype=np.bool_)
    if pa.types.is_string(cells.type):
        broken = ~_bools(
            pc.fill_null(pc.match_substring_regex(cells.view(pa.binary()), _UTF8), True)
        )
        cells = pc.if_else(pa.array(broken), pa.scalar(None, pa.string()), cells)
    halves = _check_halves(column, cells)
    values = np.where(broken, _within(column), halves.values)
    return Checked(values, halves.missing & ~broken, halves.bad | broken)


def _within(column: Column) -> float:
    """What stands in the place of a bad cell: 0, or the bound that is next to it."""
    return float(np.clip(0.0, column.lower, column.upper))


def _already_fit(column: Column, cells: pa.Array) -> FloatArray | None:
    """The values of typed cells that all lie within the bounds of a numeric column; else None."""
    if column.kind.is_whole or column.missing or cells.null_count:
        return None
    if not pa.types.is_float64(cells.type) or not len(cells):
        return None
    values: FloatArray = cells.to_numpy(zero_copy_only=False)
    with np.errstate(all="ignore"):
        fit = column.lower <= values.min() and values.max() <= column.upper  # false for NaN
    return values + 0.0 if fit else None


def _check(column: Column, cells: pa.Array) -> Checked:
    cells = _normal(column, cells)
    missing = _missing(column, cells)
    with np.errstate(all="ignore"):
        values, wrong = _values(column, cells)
    bad = wrong & ~missing
    if not column.may_be_missing:
        bad |= missing
    stored = np.clip(np.where(missing | bad, 0.0, values), column.lower, column.upper)
    return Checked(np.where(missing & ~bad, 0.0, stored) + 0.0, missing & ~bad, bad)


def _check_halves(column: Column, cells: pa.Array) -> Checked:
    """As _check. Should it fail for reasons unknown, by halves: a cell that fails alone is a bad
    one.
    """
    try:
        return _check(column, cells)
    except CuratorError:
        raise
    except Exception:  # noqa: BLE001 - one cell must not decide about the others
        if len(cells) <= 1:
            count = len(cells)
            bad = np.ones(count, np.bool_)
            return Checked(np.full(count, _within(column)), np.zeros(count, np.bool_), bad)
    middle = len(cells) // 2
    halves = [_check_halves(column, part) for part in (cells[:middle], cells[middle:])]
    return Checked(
        np.concatenate([half.values for half in halves]),
        np.concatenate([half.missing for half in halves]),
        np.concatenate([half.bad for half in halves]),
    )


def texts_of(cells: pa.Array) -> pa.Array | None:
    """Cells as stripped texts (whole numbers without a point), or None for other types."""
    cells = plain(cells)
    if pa.types.is_floating(cells.type):
        whole = pc.and_kleene(pc.equal(pc.floor(cells), cells), pc.less(pc.abs(cells), 2.0**53))
        integers = pc.cast(pc.if_else(whole, cells, None), pa.int64())
        rest = pc.if_else(pc.is_nan(cells), None, cells)
        return pc.coalesce(pc.cast(integers, pa.string()), pc.cast(rest, pa.string()))
    if pa.types.is_integer(cells.type) or pa.types.is_boolean(cells.type):
        return pc.cast(cells, pa.string())
    if pa.types.is_string(cells.type):
        return pc.utf8_trim_whitespace(cells)
    return None


def plain(cells: pa.Array) -> pa.Array:
    """Cells without dictionary encoding, and every text type as one."""
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if pa.types.is_large_string(cells.type) or pa.types.is_null(cells.type):
        return pc.cast(cells, pa.string())
    if pa.types.is_float16(cells.type):
        return pc.cast(cells, pa.float32())
    return cells


def _normal(column: Column, cells: pa.Array) -> pa.Array:
    """Texts for categorical columns and text cells, float64 for typed ones."""
    cells = plain(cells)
    if column.is_date and is_temporal(cells.type):
        return typed_days(cells)
    typed = not pa.types.is_string(cells.type)
    if typed and not (column.reads_texts or column.is_date) and _is_number(cells.type):
        return pc.cast(cells, pa.float64(), safe=False)
    texts = texts_of(cells)
    if texts is None:
        raise CuratorError(
            f"Column {column.name} has type {cells.type} in the file, which cannot be read as "
            f"{column.kind}; write it as text or numbers."
        )
    return pc.fill_null(texts, "") if _says_empty(column) else texts


def _says_empty(column: Column) -> bool:
    """Whether an empty cell is declared as a value, such as the "no" of flags that are "Y" or
    blank: files with types have a null there, where texts have nothing.
    """
    return any(text == "" for text, _ in column.recode.codes)


def _is_number(kind: pa.DataType) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(test(kind) for test in tests)


def _missing(column: Column, cells: pa.Array) -> BoolArray:
    """Nulls, NaN of typed cells, and the declared markers (typed cells: by their number)."""
    markers = list(column.missing)
    if not pa.types.is_string(cells.type):
        numbers = [float(m) for m in markers if _NUMBER.fullmatch(m)]
        marked = pc.is_in(cells, pa.array(numbers, pa.float64()))
        marked = pc.or_(marked, pc.is_null(cells, nan_is_null=True))
    else:
        marked = pc.or_(pc.is_in(cells, pa.array(markers, pa.string())), pc.is_null(cells))
    return _bools(marked)


def _values(
    column: Column, cells: pa.Array, numbers: NumberStyle = PLAIN
) -> tuple[FloatArray, BoolArray]:
    """(values, wrong kind); the values of missing and wrong cells mean nothing, but are finite."""
    if column.reads_texts:
        values = _recoded(column, cells)
    elif column.is_date and pa.types.is_string(cells.type):
        values = text_days(cells, column.recode.date)
    elif pa.types.is_string(cells.type):
        values = _parsed(column.kind, cells, numbers)
    else:
        values = _floats(cells)
    wrong = ~np.isfinite(values)
    values = np.where(wrong, 0.0, values)
    if column.kind is ColumnKind.INTEGER:
        wrong |= values != np.floor(values)
    if column.kind is ColumnKind.BOOLEAN:
        wrong |= (values != 0.0) & (values != 1.0)
    return values, wrong


def _parsed(kind: ColumnKind, cells: pa.Array, numbers: NumberStyle) -> FloatArray:
    if kind is ColumnKind.BOOLEAN:
        codes = _codes(pc.utf8_lower(cells), tuple(BOOLEAN_TEXTS))
        table = np.array([*BOOLEAN_TEXTS.values(), np.nan])
        return table[np.where(np.isnan(codes), len(BOOLEAN_TEXTS), codes).astype(np.intp)]
    return _floats(pc.cast(plain_numbers(cells, numbers), pa.float64()))


def _recoded(column: Column, cells: pa.Array) -> FloatArray:
    """The values of texts that are declared; of any other one, the catch-all's or NaN."""
    codes = column.recode.codes or tuple((text, float(i)) for i, text in enumerate(column.levels))
    table = np.array([*(value for _, value in codes), np.nan])
    found = _codes(cells, tuple(text for text, _ in codes))
    values = table[np.where(np.isnan(found), len(codes), found).astype(np.intp)]
    if column.recode.other is None:
        return values
    empty = _bools(pc.fill_null(pc.equal(cells, ""), True))  # an empty cell is no other level
    return np.where(np.isnan(values) & ~empty, column.recode.other, values)


def _codes(cells: pa.Array, levels: tuple[str, ...]) -> FloatArray:
    """Positions among the levels, NaN for a text that is not one."""
    return _floats(pc.index_in(cells, pa.array(levels, pa.string())))


def _floats(cells: pa.Array) -> FloatArray:
    values: FloatArray = pc.cast(cells, pa.float64()).to_numpy(zero_copy_only=False)
    return values  # nulls have become NaN


def _bools(cells: pa.Array) -> BoolArray:
    values: BoolArray = cells.to_numpy(zero_copy_only=False).astype(np.bool_)
    return values


def _reason(column: Column, cell: object, *, wrong: bool) -> str:
    """The fault in words; it may quote the cell, because only the curator reads it."""
    shown = _shown(cell)
    if cell is None or cell == "" or (isinstance(cell, float) and isnan(cell)):
        return "the cell is missing; give the column `missing` markers, or fill the cell"
    if not wrong:
        return (
            f"{shown} is outside [{column.shown(column.lower)}, {column.shown(column.upper)}] "
            "(strict)"
        )
    what = column.kind.traits.cell
    if column.is_date:
        what = f"a date written as {column.recode.date}"
    if column.recode.codes:
        what = "one of the declared texts"
    return f"{shown} is not {what}"


def _shown(cell: object) -> str:
    text = cell if isinstance(cell, str) else f"{cell:g}" if isinstance(cell, float) else str(cell)
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
