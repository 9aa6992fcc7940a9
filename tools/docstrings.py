# SPDX-License-Identifier: Apache-2.0
"""Public methods of both distributions that have no docstring: `python tools/docstrings.py`.

ruff asks it of classes and functions (D101, D103), but knows no base classes, so that its rule for
methods (D102) asks the same sentence of every class that implements an interface. Here a method
needs none where a base class in these distributions documents it.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("server/reticent_server", "client/reticent")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Class:
    """A class and where it stands; classes have one meaning a name in these distributions."""

    path: Path
    node: ast.ClassDef

    @property
    def bases(self) -> list[str]:
        """Names without modules and type arguments."""
        return [ast.unparse(base).partition("[")[0].split(".")[-1] for base in self.node.bases]

    @property
    def methods(self) -> list[Function]:
        """Public ones, a property by its getter."""
        own = [node for node in self.node.body if isinstance(node, Function)]
        return [
            node
            for node in own
            if not node.name.startswith("_")
            and not any(
                ast.unparse(d).endswith((".setter", "overload")) for d in node.decorator_list
            )
        ]


def classes(sources: Iterable[Path]) -> dict[str, list[Class]]:
    """All classes by name. sources: Python files."""
    found: dict[str, list[Class]] = {}
    for path in sources:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(Class(path, node))
    return found


def is_told(name: str, method: str, known: dict[str, list[Class]]) -> bool:
    """Whether a class of this name, or one that it inherits from, documents the method."""
    return any(
        any(each.name == method and ast.get_docstring(each) for each in one.methods)
        or any(is_told(base, method, known) for base in one.bases if base != name)
        for one in known.get(name, ())
    )


def untold(sources: Iterable[Path]) -> Iterator[str]:
    """path:line: Class.method of public classes."""
    known = classes(sources)
    for name, several in known.items():
        for one in several if not name.startswith("_") else ():
            for method in one.methods:
                told = ast.get_docstring(method) or any(
                    is_told(base, method.name, known) for base in one.bases
                )
                if not told:
                    yield f"{one.path}:{method.lineno}: {name}.{method.name}"


def main() -> int:
    """Names them; 1 where there are any."""
    found = sorted(untold(path for each in SOURCES for path in sorted((ROOT / each).rglob("*.py"))))
    for each in found:
        print(f"{each} has no docstring")
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
