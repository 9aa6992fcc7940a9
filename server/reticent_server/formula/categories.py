# SPDX-License-Identifier: Apache-2.0
"""Categorical factors of a formula: which levels, in which groups, by which contrast.

    category := ("C" | "factor" | "as.factor")
                "(" (column | part | group) ["," (reference level | contrast)] ")" | group
    contrast := "Sum" | "Helmert" | "Treatment" ["(" [reference] level ")"]
    reference := ("ref" | "reference") "="
    group    := "merge" "(" column {"," name "=" levels} ")"
              | "lump" "(" column "," ("keep" "=" levels | "n" "=" number)
                ["," "other" "=" level] ")"
    part     := ("year" | "month") "(" date column ")"
    levels   := "[" level {"," level} "]"            level := text in quotes | whole number

merge joins the listed levels under a new name, and the others stay. lump keeps the listed levels,
and joins the others. With n= the levels kept are the n with the largest shares in the profile that
the curator has released: public numbers, so that nothing is read from the data. The label lists
them, so that a fit says which levels it had.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from reticent_server.domain.design import Apply, ColumnValue
from reticent_server.domain.schema import Column
from reticent_server.fitting.public.rows import level_shares
from reticent_server.formula.contrasts import CONTRASTS, FactorLevel
from reticent_server.formula.factor import Factor, column_levels
from reticent_server.formula.intervals import interval
from reticent_server.formula.labels import label, quote, spelled
from reticent_server.formula.tokens import Cursor, Token
from reticent_server.formula.values import is_call, parse_call
from reticent_server.numerics.calendar import months_of, year_of

_FACTORS, _GROUPS = ("C", "factor", "as.factor"), ("merge", "lump")
_REFERENCE = ("ref", "reference")
_OTHER = "other"
_NO_PROFILE = (
    "lump(…, n=) takes the most frequent levels from the profile, and this column has no shares "
    "in a released one: list the "
    'levels, as in lump(g, keep=["a", "b"]), or ask the curator for a profile'
)


def is_category(cursor: Cursor) -> bool:
    """Whether a factor with levels starts here that is written as a call."""
    return is_call(cursor) and any(map(cursor.at_word, (*_FACTORS, *_GROUPS)))


def parse_category(cursor: Cursor) -> Factor:
    """The factor that is written here as a call."""
    if not any(map(cursor.at_word, _FACTORS)):
        return _within_limits(cursor, _group(cursor), cursor.token)
    cursor.advance()
    with cursor.nested():
        cursor.expect("(")
        start = cursor.token
        grouped = is_call(cursor) and any(map(cursor.at_word, _GROUPS))
        factor = _group(cursor) if grouped else _ungrouped(cursor)
        factor = _within_limits(cursor, factor, start)
        if not grouped:
            factor = replace(factor, label=f"C({factor.label})")
        if cursor.at(","):
            cursor.advance()
            factor = _coded(cursor, factor)
        cursor.expect(")")
    return factor


def plain_category(cursor: Cursor, column: Column, start: Token) -> Factor:
    """The factor of a categorical column that stands alone."""
    return _within_limits(cursor, _factor(cursor, column, start), start)


def _coded(cursor: Cursor, factor: Factor) -> Factor:
    """What stands after the comma of C(…, ): a reference or a contrast."""
    start = cursor.token
    if any(map(cursor.at_word, _REFERENCE)):
        return _referred(cursor, factor)
    if start.kind != "name" or start.quoted or start.text not in CONTRASTS:
        cursor.fail(
            f'write ref="level" or one of {", ".join(CONTRASTS)} after the comma, or leave the '
            "comma out"
        )
    cursor.advance()
    if start.text == "Treatment":
        if cursor.at("("):
            with cursor.nested():
                cursor.advance()
                factor = _referred(cursor, factor)
                cursor.expect(")")
        return factor
    inner = (
        factor.label.removeprefix("C(").removesuffix(")")
        if factor.label.startswith("C(")
        else factor.label
    )
    return replace(factor, label=f"C({inner}, {start.text})", contrast=CONTRASTS[start.text])


def _referred(cursor: Cursor, factor: Factor) -> Factor:
    """The factor with the level that stands here as its reference: the first of its levels."""
    if any(map(cursor.at_word, _REFERENCE)):
        cursor.advance()
        cursor.expect("=")
    start, text = cursor.token, _level(cursor)
    first = tuple(level for level in factor.levels if level.text == text)
    if not first:
        cursor.fail("the reference is not one of the column's levels, or where excludes it", start)
    return replace(factor, levels=first + tuple(v for v in factor.levels if v.text != text))


def _levels_of(cursor: Cursor) -> Factor:
    start = cursor.token
    return _factor(cursor, cursor.column(), start)


def _ungrouped(cursor: Cursor) -> Factor:
    """A column's levels, or the years or months of a date."""
    if not (is_call(cursor) and (cursor.at_word("year") or cursor.at_word("month"))):
        return _levels_of(cursor)
    value = parse_call(cursor)
    assert isinstance(value, Apply)  # noqa: S101 - what these two functions parse to
    assert isinstance(value.argument, ColumnValue)  # noqa: S101 - a date column
    first, last = interval(value, cursor.columns)
    numbers = range(int(first), int(last) + 1)
    column = cursor.columns[value.argument.column]
    days = months_of if value.function == "month" else year_of
    levels = tuple(
        FactorLevel(str(number), (float(number),))
        for number in numbers
        if any(column.admits(*ends) for ends in days(number, column.lower, column.upper))
    )
    name = label(value)
    return Factor(f"C({name})", name, None, column.name, levels, function=value.function)


def _factor(cursor: Cursor, column: Column, start: Token) -> Factor:
    """The levels of a column."""
    name = quote(column.name)
    if not column.kind.is_whole:
        cursor.fail(f"{name} is numeric and has no levels; use it without C()", start)
    most = cursor.limits.max_levels
    if column.upper - column.lower >= most:
        cursor.fail(f"use a factor with at most {most:,} levels; {name} has more", start)
    return Factor(f"C({name})", name, None, column.name, column_levels(column))


def _within_limits(cursor: Cursor, factor: Factor, start: Token) -> Factor:
    most = cursor.limits.max_columns
    if len(factor.levels) > most:
        cursor.fail(
            f"use a factor with at most {most} levels, or join levels by merge() or lump(); "
            f"{quote(factor.column)} has more",
            start,
        )
    return factor


def _group(cursor: Cursor) -> Factor:
    merges = cursor.at_word("merge")
    cursor.advance()
    with cursor.nested():
        cursor.expect("(")
        start, column = cursor.token, cursor.column()
        # all declared levels may be listed; what the condition excludes is in none of the groups
        factor = _factor(cursor, replace(column, excluded=()), start)
        cursor.expect(",")
        label, levels = (_merged if merges else _lumped)(cursor, factor)
        cursor.expect(")")
    kept = (replace(v, codes=tuple(c for c in v.codes if column.admits(c, c))) for v in levels)
    return replace(factor, key=label, label=label, levels=tuple(v for v in kept if v.codes))


def _merged(cursor: Cursor, factor: Factor) -> tuple[str, tuple[FactorLevel, ...]]:
    """(label, levels) of merge(column, name=[…], …)."""
    groups: dict[str, list[str]] = {}
    while True:
        start = cursor.token
        if start.kind != "name":
            cursor.fail(
                'write a name for the levels that are joined, as in merge(g, low=["a", "b"])'
            )
        cursor.advance()
        if start.text in groups or "[" in start.text or "]" in start.text:
            cursor.fail("use another name for these levels", start)
        cursor.expect("=")
        taken = {text for texts in groups.values() for text in texts}
        groups[start.text] = _listed(cursor, factor, taken)
        if start.text in {v.text for v in factor.levels} - set(groups[start.text]):
            cursor.fail(
                "another level has this name: use another one, or list that level, too", start
            )
        if not cursor.at(","):
            break
        cursor.advance()
    name_of = {text: name for name, texts in groups.items() for text in texts}
    lists = ", ".join(f"{quote(name)}={_shown(texts)}" for name, texts in groups.items())
    return f"merge({quote(factor.column)}, {lists})", _joined(cursor, factor, name_of)


def _lumped(cursor: Cursor, factor: Factor) -> tuple[str, tuple[FactorLevel, ...]]:
    """(label, levels) of lump(column, keep=[…]) and lump(column, n=…): what is kept, and the
    others."""
    start, other = cursor.token, _OTHER
    if not (cursor.at_word("keep") or cursor.at_word("n")):
        cursor.fail('write keep=["a", "b"] or n=10')
    by_share = cursor.advance().text == "n"
    cursor.expect("=")
    kept = _most_frequent(cursor, factor) if by_share else _listed(cursor, factor, set())
    if cursor.at(","):
        cursor.advance()
        if not cursor.at_word("other"):
            cursor.fail('write other="name" after the comma')
        cursor.advance()
        cursor.expect("=")
        start, other = cursor.token, _level(cursor)
    if other in kept or not other or set(other) & set("[]\"'`"):
        cursor.fail(
            'the other levels need a name of their own: write other="name" after the list', start
        )
    name_of = {v.text: other for v in factor.levels if v.text not in kept}
    named = "" if other == _OTHER else f', other="{other}"'
    return f"lump({quote(factor.column)}, keep={_shown(kept)}{named})", _joined(
        cursor, factor, name_of
    )


def _joined(cursor: Cursor, factor: Factor, name_of: dict[str, str]) -> tuple[FactorLevel, ...]:
    """Levels with those of one name joined, where the first of them stands."""
    codes: dict[str, tuple[float, ...]] = {}
    for level in factor.levels:
        name = name_of.get(level.text, level.text)
        codes[name] = codes.get(name, ()) + level.codes
    if len(codes) < 2:
        cursor.fail("join fewer levels: only one is left")
    return tuple(FactorLevel(name, values) for name, values in codes.items())


def _most_frequent(cursor: Cursor, factor: Factor) -> list[str]:
    """The n levels of largest released shares, in declared order."""
    start = cursor.token
    n = cursor.number("write how many levels are kept, as a whole number")
    if not (n.is_integer() and 1 <= n < len(factor.levels)):
        cursor.fail(f"keep from 1 to {len(factor.levels) - 1} of the column's levels", start)
    released = cursor.profile and cursor.profile.columns.get(factor.column)
    if not released or released.counts is None or len(released.counts) != len(factor.levels):
        cursor.fail(_NO_PROFILE, start)
    column = cursor.columns[factor.column]
    admitted = [column.admits(*level.codes, *level.codes) for level in factor.levels]
    shares = np.where(admitted, level_shares(released), -1.0)
    places = np.argsort(-shares, kind="stable")[: int(n)]
    return [factor.levels[place].text for place in sorted(places)]


def _listed(cursor: Cursor, factor: Factor, taken: set[str]) -> list[str]:
    """Declared levels in brackets, each once."""
    known = {level.text for level in factor.levels}
    texts = list[str]()
    cursor.expect("[")
    while not texts or cursor.at(","):
        if texts:
            cursor.advance()
        start, text = cursor.token, _level(cursor)
        if text not in known:
            cursor.fail(f"this is not one of the declared levels of {quote(factor.column)}", start)
        if text in taken or text in texts:
            cursor.fail("this level is listed already", start)
        texts.append(text)
    cursor.expect("]")
    return texts


def _level(cursor: Cursor) -> str:
    if cursor.token.kind == "string":
        return cursor.advance().text
    return spelled(cursor.number("write the level in quotes, or as a whole number"))


def _shown(texts: Sequence[str]) -> str:
    return f"[{', '.join(_quoted(texts))}]"


def _quoted(texts: Sequence[str]) -> Iterator[str]:
    return (f"'{text}'" if '"' in text else f'"{text}"' for text in texts)
