# SPDX-License-Identifier: Apache-2.0
"""The page of proofs names every mechanism, every kind and every attack, and nothing that is not
there.
"""

import re
from pathlib import Path

import pytest

from reticent_server.kinds import KINDS
from support.documents.code_blocks import ROOT

PAGE = (ROOT / "docs/proofs.md").read_text("utf-8")
SERVER = ROOT / "server/reticent_server"
TABLES = {"__init__", "registry", "column_registry"}
"""Of `mechanisms`: they say which mechanism belongs to a part, and release nothing themselves."""


@pytest.mark.parametrize("path", sorted((SERVER / "mechanisms").glob("*.py")), ids=lambda p: p.stem)
def test_every_mechanism_is_there(path: Path) -> None:
    name = path.stem
    assert (f"`mechanisms/{name}.py`" in PAGE) == (name not in TABLES)


@pytest.mark.parametrize("name", [kind.name for kind in KINDS])
def test_every_kind_is_there(name: str) -> None:
    assert re.search(rf"`(kinds/|mechanisms/){name}(/|\.py)", PAGE), name


@pytest.mark.parametrize(
    "path", sorted((ROOT / "tests/privacy").glob("*.py")), ids=lambda p: p.stem
)
def test_every_attack_is_there(path: Path) -> None:
    assert f"{path.name}`" in PAGE


def test_every_path_on_it_exists() -> None:
    paths = re.findall(
        r"`((?:tests|mechanisms|kinds|fitting|numerics|domain|accounting)/[\w/]+\.py)`", PAGE
    )
    assert len(paths) > 30
    for path in paths:
        assert (ROOT / path).exists() or (SERVER / path).exists(), path
