# SPDX-License-Identifier: Apache-2.0
"""`tools/imports.py`: what counts as an import, and what must be named."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from support.documents.tools import tool

if TYPE_CHECKING:
    from pathlib import Path


def faults(source: str, *requirements: str) -> list[str]:
    found: list[str] = tool("imports").faults(
        {"a.py": dedent(source)}, requirements, "reticent-server"
    )
    return found


@pytest.mark.parametrize(
    "source",
    [
        "import numpy.linalg as la",
        "from numpy import linalg",
        "def late():\n    import numpy",
        "import typing\nif typing.TYPE_CHECKING:\n    import numpy",
        "from importlib import import_module\nimport_module('numpy.linalg')",
        "import importlib.util\nimportlib.util.find_spec('numpy')",
        "from importlib import import_module\ndef need(m):\n    import_module(m)\nneed('numpy')",
    ],
)
def test_every_way_to_import_counts(source: str) -> None:
    (line,) = faults(source)
    assert line.startswith("a.py:")
    assert line.endswith("imports numpy, which reticent-server does not require")
    assert faults(source, "numpy>=2.0") == []
    assert faults(source, "NumPy >= 2 ; extra == 'fast'") == []


def test_a_distribution_has_its_own_name() -> None:
    assert faults("import yaml", "pyyaml>=6") == []
    assert faults("import yaml", "yaml>=6") != []


def test_what_comes_along_with_another_must_be_named() -> None:
    assert faults("import fastapi, starlette", "fastapi>=0.115") != []


def test_itself_and_the_standard_library_need_no_name() -> None:
    assert faults("import json, reticent_server.cli\nfrom . import beside") == []
    assert faults("import reticent") != []  # the client is another distribution


def test_what_nobody_imports_is_not_required() -> None:
    assert faults("", "rich>=13") == ["reticent-server requires rich and imports it nowhere"]
    assert faults("", "psycopg[binary]>=3.2") == []  # another library imports it


def test_a_folder_s_own_metadata_are_asked(tmp_path: Path) -> None:
    """That those of this repository are complete is asked of the wheels
    (tests/contract/test_distributions.py).
    """
    package = tmp_path / "client/reticent"
    package.mkdir(parents=True)
    (package / "near.py").write_text(
        "try:\n    import numpy\nexcept ImportError:\n    import yaml\n"
    )
    project = '[project]\nname = "reticent"\ndependencies = ["numpy"]\n'
    (tmp_path / "client/pyproject.toml").write_text(project)
    line = "client/reticent/near.py:4 imports yaml, which reticent does not require"
    assert tool("imports").of_folder("client", tmp_path) == [line]
    extra = '[project.optional-dependencies]\nyaml = ["pyyaml"]\n'
    (tmp_path / "client/pyproject.toml").write_text(project + extra)
    assert tool("imports").of_folder("client", tmp_path) == []
