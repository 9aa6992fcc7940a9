# SPDX-License-Identifier: Apache-2.0
"""--noise-seed shifts every seed of the suite."""

import re

import pytest

from support import seeds
from support.documents.code_blocks import ROOT

OWN = ("tests/support/seeds.py", "tests/support/sampling.py", "tests/contract/test_seeds.py")
"""The door itself; the order of --shuffle has a seed of its own."""


def test_every_generator_is_shifted_or_says_why_not() -> None:
    """Those that say so draw a table that other software was given."""
    found = [
        f"{file.relative_to(ROOT)}: {line.strip()}"
        for file in sorted((ROOT / "tests").rglob("*.py"))
        if str(file.relative_to(ROOT)) not in OWN
        for line in file.read_text("utf-8").splitlines()
        if re.search(r"default_rng\(|\bRandom\(|RandomState\(", line) and "# fixed: " not in line
    ]
    assert found == []


def test_another_shift_draws_others_and_the_same_shift_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = []
    for shift in ("0", "1", "1", "2"):
        monkeypatch.setenv(seeds.VARIABLE, shift)
        drawn.append((seeds.seeded(3).random(), seeds.seeded_random(3).random()))
    assert drawn[1] == drawn[2]
    assert {len({draw[k] for draw in drawn}) for k in range(2)} == {3}
