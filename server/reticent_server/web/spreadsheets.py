# SPDX-License-Identifier: Apache-2.0
"""Cells of CSV files that spreadsheets open: none is a formula, whoever has named a level, a column
or a person.

A spreadsheet takes a text for a formula by its first sign, also after a separator that it knows and
the file does not mean (a semicolon, where commas are decimal points). An apostrophe before that
sign makes it text.
"""

import re

_SIGNS = (
    "=+\\-@\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}"
    "\N{FULLWIDTH HYPHEN-MINUS}\N{FULLWIDTH COMMERCIAL AT}"
)
_SEPARATORS = frozenset(";\t\r\n")
_BEFORE = re.compile(rf"(?<![;\s\0])[;\s\0]*+(?=[{_SIGNS}])")
"""All blanks and semicolons before such a sign, from their first one on: one look at each."""

_NUMBER = re.compile(r"[+-]?[0-9][0-9.,]*(?:[eE][+-]?[0-9]+)?%?", re.ASCII)


def cell(text: str) -> str:
    """The text for a cell; a number stays one, with the sign that a spreadsheet reads."""
    plain = text.replace("\N{MINUS SIGN}", "-")
    return plain if _NUMBER.fullmatch(plain) else _BEFORE.sub(_marked, plain)


def _marked(found: re.Match[str]) -> str:
    before = found[0]
    begins = found.start() == 0 or not _SEPARATORS.isdisjoint(before)
    return f"{before}'" if begins else before
