# SPDX-License-Identifier: Apache-2.0
"""Several fits in one table, their differences, and a plot of them."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import reticent
from support.client.replying_server import regression_result, release

mpl.use("Agg")


@pytest.fixture
def fits() -> dict[str, reticent.RegressionResults]:
    other = regression_result() | {"coefficients": [9.0, 0.7, -0.3, 0.1, 1.0]}
    return {
        "all": reticent.RegressionResults(release()),
        "50%_off": reticent.RegressionResults(release(result=other)),
    }


def test_a_table_has_errors_in_parentheses(fits: dict[str, reticent.RegressionResults]) -> None:
    table = reticent.table(fits)
    rows = dict(zip([row[0] or "se" for row in table.rows[:2]], table.rows[:2], strict=True))
    assert table.header == ("", "all", "50%_off")
    assert rows["x1"] == ("x1", "0.5000***", "0.7000***")
    assert rows["se"] == ("", "(0.0500)", "(0.0500)")
    assert ("x1:x2", "–", "–") in table.rows
    assert ("Records", "20,000", "20,000") in table.rows
    assert "0.5000***" in str(table)
    assert "privacy noise" in table.text()


def test_the_forms_of_a_table(fits: dict[str, reticent.RegressionResults]) -> None:
    table = reticent.table(list(fits.values()))
    assert table.header == ("", "(1)", "(2)")
    assert "<td>0.5000***</td>" in table.html()
    assert r"| x1 | 0.5000\*\*\* | 0.7000\*\*\* |" in table.markdown()
    assert r"x1 & 0.5000*** & 0.7000*** \\" in table.latex()
    assert r"50\%\_off" in reticent.table(fits).latex()
    assert table.latex().count(r"\toprule") == 1


def test_ratios_in_a_table(fits: dict[str, reticent.RegressionResults]) -> None:
    table = reticent.table([fits["all"]], exp=True, stars=False)
    assert table.rows[0] == ("x1", f"{np.exp(0.5):.4f}")
    assert table.rows[1] == ("", f"({np.exp(0.5) * 0.05:.4f})")


def test_a_table_without_fits_is_refused() -> None:
    with pytest.raises(ValueError, match="one fit"):
        reticent.table([])


def test_a_word_document_needs_its_package(
    fits: dict[str, reticent.RegressionResults], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "docx", None)
    with pytest.raises(reticent.MissingDependency, match=r"reticent\[word\]"):
        reticent.table(fits).docx(tmp_path / "table.docx")


def test_a_word_document_has_the_cells(
    fits: dict[str, reticent.RegressionResults], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With a double that keeps what python-docx's interface is told."""
    kept: dict[str, Any] = {"notes": []}

    class Cell:
        text = ""

    class Row:
        def __init__(self, count: int) -> None:
            self.cells = [Cell() for _ in range(count)]

    class Grid:
        def __init__(self, rows: int, cols: int) -> None:
            self.rows = [Row(cols) for _ in range(rows)]

    class Document:
        def add_table(self, rows: int, cols: int) -> Grid:
            kept["table"] = Grid(rows, cols)
            return kept["table"]

        def add_paragraph(self, text: str) -> None:
            kept["notes"].append(text)

        def save(self, path: str) -> None:
            kept["path"] = path

    module = ModuleType("docx")
    module.Document = Document  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "docx", module)
    table = reticent.table(fits)
    table.docx(tmp_path / "table.docx")
    cells = [tuple(cell.text for cell in row.cells) for row in kept["table"].rows]
    assert cells == [table.header, *table.rows]
    assert tuple(kept["notes"]) == table.notes
    assert kept["path"] == str(tmp_path / "table.docx")


def test_differences_hold_for_any_correlation(fits: dict[str, reticent.RegressionResults]) -> None:
    found = reticent.compare(*fits.values())
    place = found.names.index("x1")
    assert found.estimates[place] == pytest.approx(0.2)
    assert found.bse[place] == pytest.approx(0.1)
    assert np.isnan(found.estimates[found.names.index("x1:x2")])
    apart = reticent.compare(*fits.values(), independent=True)
    assert apart.bse[place] == pytest.approx(0.05 * np.sqrt(2))
    widened = found.names.index("x2")
    assert found.bse[widened] == pytest.approx(2 * 1.25 * 0.1)


def test_fits_are_drawn_side_by_side(fits: dict[str, reticent.RegressionResults]) -> None:
    axes = reticent.plot_fits(fits)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x1", "x2", "g[b]", "x1:x2"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["all", "50%_off"]
    drawn = axes.containers[0].lines[0].get_xdata()
    assert drawn.tolist() == pytest.approx([0.5, -0.3, 0.1])  # none for what is not identifiable
    one = reticent.plot_fits(fits, ["x2"])
    assert [label.get_text() for label in one.get_yticklabels()] == ["x2"]
