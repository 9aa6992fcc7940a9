# SPDX-License-Identifier: Apache-2.0
"""Every distribution names what it imports, and nothing else: `python tools/imports.py`; `make
check` runs it.

All imports of a distribution's source files count, also those in functions, and those by name: a
call of `importlib.import_module` or `find_spec`, or of a function that hands its first argument to
one of them. Each must be of the standard library, of the distribution itself, or of a distribution
that its metadata require, with its extras. A package that comes along with another (starlette with
fastapi) must be named all the same: the other may drop it.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = {"client": ("client/reticent",), "server": ("server/reticent_server", "migrations")}
"""By the folder of a distribution's pyproject.toml: where the files of its wheel come from."""

OWN = {"reticent": "reticent", "reticent_server": "reticent-server"}
"""By package: the distribution. An editable installation does not say so itself."""

LOADED_BY_OTHERS = {
    "cryptography": "distributed's TLS",
    "psycopg": "SQLAlchemy, for postgresql:// addresses",
    "uvloop": "uvicorn, where it is there",
}
"""Required and imported by none of our files: by distribution, who imports it."""

_BY_NAME = frozenset({"import_module", "find_spec", "__import__"})
_DISTRIBUTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Import:
    """package: the first part of the module's name. place: file and line."""

    package: str
    place: str


def canonical(name: str) -> str:
    """A distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def required(requirements: Iterable[str]) -> set[str]:
    """The canonical names in lines of requirements, whatever their versions, extras and markers."""
    names = (_DISTRIBUTION.match(line.strip()) for line in requirements)
    return {canonical(name[0]) for name in names if name}


def imports(sources: Mapping[str, str]) -> Iterator[Import]:
    """Of source texts by file name: all absolute imports, and all imports by name."""
    trees = {name: ast.parse(text, name) for name, text in sources.items()}
    by_name = [trees[name] for name, text in sources.items() if any(n in text for n in _BY_NAME)]
    loaders = _BY_NAME | {each for tree in by_name for each in _wrappers(tree)}
    for file, tree in trees.items():
        called = any(each in sources[file] for each in loaders)
        for node in ast.walk(tree) if called else _statements(tree):
            for module in _modules(node, loaders):
                yield Import(module.partition(".")[0], f"{file}:{getattr(node, 'lineno', 0)}")


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Of a file without calls that import: most of its nodes are in expressions, and none of those
    imports.
    """
    left = [tree]
    while left:
        node = left.pop()
        if not isinstance(node, ast.expr):
            yield node
            left += ast.iter_child_nodes(node)


def _modules(node: ast.AST, loaders: Collection[str]) -> Iterable[str]:
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom(module=str() as module, level=0):
            return [module]
        case ast.Call(args=[ast.Constant(value=str() as module), *_]) if _called(node) in loaders:
            return [module]
    return []


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _wrappers(tree: ast.AST) -> Iterator[str]:
    """Functions that import the module that their first argument names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.args.args:
            first = node.args.args[0].arg
            calls = (each for each in ast.walk(node) if isinstance(each, ast.Call))
            if any(_called(c) in _BY_NAME and _is_name(c, first) for c in calls):
                yield node.name


def _is_name(call: ast.Call, name: str) -> bool:
    return bool(call.args) and isinstance(call.args[0], ast.Name) and call.args[0].id == name


def faults(sources: Mapping[str, str], requirements: Iterable[str], own: str) -> list[str]:
    """What is imported and not required, and what is required and not imported, one a line.

    sources: by file name. requirements: of the metadata, extras' included. own: the distribution's
    canonical name.
    """
    named, used, wrong = required(requirements), set[str](), []
    for each in imports(sources):
        if each.package in sys.stdlib_module_names:
            continue
        sources_of = {canonical(name) for name in _given().get(each.package, [each.package])}
        used |= sources_of
        if not sources_of & (named | {own}):
            wrong.append(f"{each.place} imports {each.package}, which {own} does not require")
    idle = named - used - LOADED_BY_OTHERS.keys()
    return wrong + [f"{own} requires {name} and imports it nowhere" for name in sorted(idle)]


@cache
def _given() -> Mapping[str, list[str]]:
    """By package: the distributions that bring it. All that is installed is read for it, once."""
    return {**packages_distributions()} | {package: [name] for package, name in OWN.items()}


def of_folder(folder: str, root: Path = ROOT) -> list[str]:
    """The faults of the distribution whose pyproject.toml is in a folder of the repository."""
    project = tomllib.loads((root / folder / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project.get("optional-dependencies", {}).values()
    lines = [*project["dependencies"], *(line for extra in extras for line in extra)]
    files = [path for place in SOURCES[folder] for path in sorted((root / place).rglob("*.py"))]
    texts = {str(path.relative_to(root)): path.read_text("utf-8") for path in files}
    return faults(texts, lines, canonical(project["name"]))


def main() -> int:
    found = [line for folder in SOURCES for line in of_folder(folder)]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
