# SPDX-License-Identifier: Apache-2.0
"""Plain-text and HTML tables, and how numbers are shown."""

import textwrap
from collections.abc import Iterable, Sequence
from html import escape
from math import isfinite
from typing import NoReturn

WIDTH = 90


class Text(str):
    """A text that shows itself as it is, in a terminal and in a notebook."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>"

    def as_latex(self) -> NoReturn:
        """Raises AttributeError, which says what has a table's LaTeX."""
        raise AttributeError('a summary is a text; write reticent.table({"fit": fit}).latex()')


def number(value: float | None) -> str:
    """At least three significant digits; a dash for what is not a number."""
    if value is None or not isfinite(value):
        return "–"
    size = abs(value)
    if size != 0 and not 1e-4 <= size < 1e7:
        return f"{value:.3e}"
    if 0 < size < 1e-2:
        return f"{value:.6f}"
    return f"{value:.4f}" if size < 1e3 else f"{value:.1f}"


def probability(value: float | None) -> str:
    """A p-value to three decimals, "<.001" below that, and a dash where there is none."""
    if value is None or not isfinite(value):
        return "–"
    return "<.001" if value < 0.001 else f"{value:.3f}"


def p_value(value: float | None) -> str:
    """A p-value in a sentence: "p = 0.031", "p < .001"."""
    text = probability(value)
    return f"p < {text[1:]}" if text.startswith("<") else f"p = {text}"


def whole(value: float) -> str:
    """A noisy count, which is a whole number."""
    return f"{value:,.0f}" if isfinite(value) else "–"


def plain(value: float | None) -> str:
    """The shortest usual spelling, for parameters such as epsilon."""
    return "–" if value is None else f"{value:g}"


def text_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table: the first column to the left, the others to the right."""
    table = [list(header), *map(list, rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]
    lines = [
        "  ".join(cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(cells))
        for cells in (list(zip(row, widths, strict=True)) for row in table)
    ]
    return [lines[0], "-" * len(lines[0]), *lines[1:]]


def html_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as HTML, with every cell escaped. Rows have as many cells as the header."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def paragraph(text: str, bullet: str = "") -> list[str]:
    """A paragraph, wrapped."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    )
