# SPDX-License-Identifier: Apache-2.0
"""Runs the notebooks in docs/notebooks and keeps what they show: `python tools/notebooks.py [NAME
…]`.

--data FILE: the table of house sales that the housing notebook reads; it is not part of this
repository. The cells are plain Python: each is run in one namespace, and the value of its last
expression is shown as a notebook would show it (a table, a text, a picture).
"""

import argparse
import ast
import base64
import hashlib
import io
import json
import shutil
import tempfile
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs/notebooks"
HOUSES = "kc_house_data.csv"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="all where none is named")
    parser.add_argument("--data", type=Path, metavar="FILE")
    given = parser.parse_args()
    mpl.use("Agg")
    for path in sorted(FOLDER.glob("*.ipynb")):
        if given.names and path.stem not in given.names:
            continue
        notebook = json.loads(path.read_text("utf-8"))
        with tempfile.TemporaryDirectory() as folder:
            if given.data is not None:
                shutil.copy(given.data, Path(folder) / HOUSES)
            execute(notebook, Path(folder))
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


def digest(notebook: dict[str, Any]) -> str:
    """Of what is run: outputs that were kept with another digest are out of date."""
    code = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    return hashlib.sha256(json.dumps(code).encode()).hexdigest()[:16]


def execute(notebook: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Runs the code cells in `folder` and puts their outputs into the notebook; its last names."""
    notebook["metadata"]["ran"] = digest(notebook)
    names: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    with chdir(folder):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                count += 1
                cell["execution_count"] = count
                cell["outputs"] = _outputs("".join(cell["source"]), names, count)
    return names


def _outputs(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue()})
    if value is not None:
        result = {"output_type": "execute_result", "execution_count": count, "metadata": {}}
        found.append(result | {"data": _shown(value)})
    return found


def _shown(value: Any) -> dict[str, Any]:
    figure = value if isinstance(value, Figure) else getattr(value, "figure", None)
    if isinstance(figure, Figure):
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=80)
        return {"image/png": base64.b64encode(picture.getvalue()).decode(), "text/plain": "<plot>"}
    html = getattr(value, "_repr_html_", None)
    shown = {"text/plain": repr(value)}
    return shown if html is None else shown | {"text/html": html()}


if __name__ == "__main__":
    main()
