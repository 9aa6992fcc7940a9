# SPDX-License-Identifier: Apache-2.0
"""What `make check` asks of each source file: its licence, below a shebang, in the comments of its
language.
"""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from support.documents.code_blocks import ROOT


@pytest.fixture(scope="module")
def licences() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
        import licences

    return licences


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.py", '"""A module."""\n', '# {}\n"""A module."""\n'),
        ("a.sh", "#!/bin/sh\ntrue\n", "#!/bin/sh\n# {}\ntrue\n"),
        ("a.css", "p { }\n", "/* {} */\np { }\n"),
    ],
)
def test_the_line_is_added_once_at_the_top(
    licences: ModuleType, tmp_path: Path, name: str, text: str, expected: str
) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    assert not licences.is_named(path)
    licences.add(path)
    assert path.read_text("utf-8") == expected.replace("{}", licences.LICENCE)
    assert licences.is_named(path)


def test_the_licence_is_that_of_the_distributions(licences: ModuleType) -> None:
    for name in ("client", "server"):
        project = (ROOT / name / "pyproject.toml").read_text("utf-8")
        assert f'license = "{licences.LICENCE.partition(": ")[2]}"' in project
