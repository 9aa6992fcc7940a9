# SPDX-License-Identifier: Apache-2.0
"""The client is a distribution of its own: it needs no server."""

import ast
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import reticent

OPTIONAL = ("pandas", "matplotlib", "fastapi", "sqlalchemy", "typer", "pyarrow", "opendp", "jinja2")


def run(program: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_the_client_needs_nothing_of_the_server() -> None:
    blocked = f"import sys; sys.modules.update(dict.fromkeys({(*OPTIONAL, 'reticent_server')}))\n"
    done = run(blocked + "import reticent; reticent.Client('http://127.0.0.1:1', key='rk_1')")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_version_is_that_of_the_distribution() -> None:
    assert reticent.__version__ == version("reticent")


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ("import reticent", set()),
        ("from reticent import NotFound", set()),
        ("import reticent; reticent.Client", {"numpy", "httpx"}),
        ("from reticent import *", {"numpy", "scipy", "httpx"}),
    ],
)
def test_an_import_brings_what_is_used(statement: str, allowed: set[str]) -> None:
    heavy = ("numpy", "scipy", "scipy.optimize", "httpx", "pandas", "matplotlib")
    done = run(f"{statement}\nimport sys\nprint(*(m for m in {heavy} if m in sys.modules))")
    assert (done.returncode, done.stderr) == (0, "")
    assert set(done.stdout.split()) == allowed


def test_every_public_name_is_where_type_checkers_see_it() -> None:
    tree = ast.parse(Path(reticent.__file__).read_text("utf-8"))
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in checked.body if isinstance(node, ast.ImportFrom)]
    seen = {name.name: node.module for node in imports for name in node.names}
    assert sorted(seen) == reticent.__all__ == sorted(reticent._MODULES)
    for name, module in seen.items():
        assert module == f"reticent.{reticent._MODULES[name]}"
        assert getattr(reticent, name) is getattr(sys.modules[module], name)
        assert name in dir(reticent)


def test_a_name_that_there_is_not() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Clint'"):
        _ = reticent.Clint
