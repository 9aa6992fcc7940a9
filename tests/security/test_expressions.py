# SPDX-License-Identifier: Apache-2.0
"""No regular expression of the product takes time that grows faster than the text it reads.

Texts that make an expression go back again and again are made from the expression itself; steps are
counted, not seconds.
"""

import re

import pytest

from support.attacks.expressions import Expression, found, worst_growth

KNOWN_LATER = {
    "server/reticent_server/formula/panel.py": "names of columns, escaped, between fixed words",
    "server/reticent_server/workbench/controls.py": "our own docstrings",
    "server/reticent_server/workbench/drafts.py": "the name of a column, escaped",
}
"""Files with an expression that is made when it is used, and why it is linear."""

OF_THE_CALLER = {
    "client/reticent/_shapes/formulas.py",
    "client/reticent/_shapes/panels.py",
}
"""What they read is a formula that the caller writes for his own process, and nobody else's."""

ALL = found()
READ = sorted(
    {each.text: each for each in ALL if each.file not in OF_THE_CALLER and each.text}.values(),
    key=lambda each: each.where,
)


def test_all_are_found() -> None:
    assert len(READ) > 50
    for name in ("access/keys.py", "web/spreadsheets.py", "settings.py", "web/bodies.py"):
        assert any(each.file.endswith(name) for each in READ)
    assert {each.file for each in ALL if each.text is None} == set(KNOWN_LATER)
    assert {each.file for each in ALL} >= OF_THE_CALLER


@pytest.mark.parametrize("expression", READ, ids=lambda each: each.where)
def test_an_expression_reads_a_text_in_steps_that_grow_with_its_length(
    expression: Expression,
) -> None:
    growth, text = worst_growth(expression)
    assert growth < 3, f"{growth:.1f} times the steps for twice the length, of {text}"


@pytest.mark.parametrize(
    ("text", "is_searched"),
    [
        (r"((?:^|[;\t\r\n])[\s\0]*)(?=[=+-])", True),  # cells of CSV files, once
        (r"(?:\[[^\]]*\]|[^,])+", True),  # lists of forms, once
        (r"\d+\.?\d*", False),  # numbers of files, once
        (r"(a+)+b", False),
        (r"[ \t]*(?:[^\0\s]+(?:[ \t]+[^\0\s]+)*)?[ \t]*", False),  # h11's header
    ],
)
def test_expressions_that_go_back_are_seen(text: str, is_searched: bool) -> None:
    re.compile(text)
    growth, _ = worst_growth(Expression("here:1", text, 0, is_searched))
    assert growth > 3
