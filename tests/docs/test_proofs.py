"""The page of proofs names every mechanism, every estimator and every attack, and nothing that is not there."""

import re
from pathlib import Path

import pytest

from support_docs import ROOT

PAGE = (ROOT / "docs/proofs.md").read_text("utf-8")
SERVER = ROOT / "server/reticent_server"
TABLES = {"__init__", "registry", "column_registry"}
"""Of `mechanisms`: they say which mechanism belongs to a part, and release nothing themselves."""
HELPERS = {
    "__init__",
    "depth_reference",
    "scales",
    "standardise",
    "whole_columns",
}
"""Of `estimators`: what only serves others."""


@pytest.mark.parametrize("path", sorted((SERVER / "mechanisms").glob("*.py")), ids=lambda p: p.stem)
def test_every_mechanism_is_there(path: Path) -> None:
    name = path.stem
    assert (f"`mechanisms/{name}.py`" in PAGE) == (name not in TABLES)


@pytest.mark.parametrize(
    "name",
    sorted(
        path.stem
        for path in (SERVER / "estimators").iterdir()
        if path.name != "__pycache__" and path.stem not in HELPERS
    ),
)
def test_every_estimator_is_there(name: str) -> None:
    assert re.search(rf"`(estimators/|mechanisms/)?{name}(\.py|/plan\.py|/\w+\.py)?`", PAGE), name


@pytest.mark.parametrize(
    "path", sorted((ROOT / "tests/privacy").glob("*.py")), ids=lambda p: p.stem
)
def test_every_attack_is_there(path: Path) -> None:
    assert f"{path.name}`" in PAGE


def test_every_path_on_it_exists() -> None:
    paths = re.findall(
        r"`((?:tests|mechanisms|estimators|fitting|numerics|domain|accounting)/[\w/]+\.py)`", PAGE
    )
    assert len(paths) > 30
    for path in paths:
        assert (ROOT / path).exists() or (SERVER / path).exists(), path
