# SPDX-License-Identifier: Apache-2.0
"""The check that asks for docstrings of methods, where no base class documents them."""

import sys
from pathlib import Path

import pytest

from support.documents.code_blocks import ROOT

BASE = '''
class Shape(Protocol):
    @property
    def area(self) -> float:
        """In square metres."""

    def grown(self) -> "Shape": ...
'''


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("class Circle:\n    def area(self): ...\n", ["Circle.area", "Shape.grown"]),
        ("class Circle(Shape):\n    def area(self): ...\n", ["Shape.grown"]),
        ("class Circle(shapes.Shape[int]):\n    def area(self): ...\n", ["Shape.grown"]),
        ("class Circle(Shape):\n    def grown(self): ...\n", ["Circle.grown", "Shape.grown"]),
        ("class _Circle:\n    def area(self): ...\n", ["Shape.grown"]),
        ("class Circle:\n    def _area(self): ...\n", ["Shape.grown"]),
    ],
)
def test_methods_without_a_docstring(
    text: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
    import docstrings

    path = tmp_path / "shapes.py"
    path.write_text(BASE + text, "utf-8")
    found = [line.rpartition(": ")[2] for line in docstrings.untold([path])]
    assert sorted(found) == expected
