# SPDX-License-Identifier: Apache-2.0
"""Decisions have numbers of their own, without a gap, which their headings repeat."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_decisions_are_numbered_one_by_one() -> None:
    paths = sorted((ROOT / "docs/adr").glob("*.md"))
    assert [int(path.name[:4]) for path in paths] == list(range(1, len(paths) + 1))
    for path in paths:
        assert path.read_text("utf-8").startswith(f"# {int(path.name[:4])}. "), path.name
