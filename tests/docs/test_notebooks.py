# SPDX-License-Identifier: Apache-2.0
"""The notebooks were run as they stand, and run still."""

import importlib
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib as mpl
import pytest

from support.documents.code_blocks import ROOT
from support.tables.houses import write_houses

NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))
MACHINE = re.compile(r"/(?:tmp|root|home|work|Users|var)/|rk_\w|Traceback|Error\b")


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    # A notebook's `sys.executable -m …` finds the packages of this tree.
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'server'}:{ROOT / 'client'}")
    sys.modules.pop("notebooks", None)
    return importlib.import_module("notebooks")


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def shape(notebook: dict[str, Any]) -> list[list[list[str]]]:
    """For each code cell, what kinds of things it shows."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [[sorted(o.get("data", {o["output_type"]: 0})) for o in c["outputs"]] for c in cells]


def test_there_are_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["health", "housing", "register"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_kept_came_from_these_cells(path: Path, tool: ModuleType) -> None:
    notebook = read(path)
    assert notebook["metadata"]["ran"] == tool.digest(notebook)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    kinds = {kind for cell in shape(notebook) for output in cell for kind in output}
    assert kinds >= {"image/png", "text/html", "text/plain", "stream"}
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_nothing_of_the_machine_or_of_a_key_is_in_them(path: Path) -> None:
    for cell in read(path)["cells"]:
        for output in cell.get("outputs", ()):
            texts = [output.get("text", ""), *output.get("data", {}).items()]
            shown = "\n".join(
                "".join(t[1]) if isinstance(t, tuple) else "".join(t)
                for t in texts
                if not (isinstance(t, tuple) and "image" in t[0])
            )
            assert MACHINE.findall(shown) == []


@pytest.mark.audit
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_they_run(path: Path, tool: ModuleType, tmp_path: Path) -> None:
    """The housing notebook runs on an invented table of the same columns."""
    mpl.use("Agg")
    write_houses(tmp_path / "kc_house_data.csv", rows=20_000)
    notebook = read(path)
    kept = shape(notebook)
    names = tool.execute(notebook, tmp_path)
    assert shape(notebook) == kept
    assert names["fit"].status == "reply"
