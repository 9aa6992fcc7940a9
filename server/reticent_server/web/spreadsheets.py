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
_BEGINS = re.compile(rf"((?:^|[;\t\r\n])[\s\0]*)(?=[{_SIGNS}])")
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,]*(?:[eE][+-]?[0-9]+)?%?", re.ASCII)


def cell(text: str) -> str:
    """The text for a cell; a number stays one, with the sign that a spreadsheet reads."""
    plain = text.replace("\N{MINUS SIGN}", "-")
    return plain if _NUMBER.fullmatch(plain) else _BEGINS.sub(r"\1'", plain)
