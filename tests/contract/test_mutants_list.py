# SPDX-License-Identifier: Apache-2.0
"""`tools/mutants.json`: each mutant has its line once in its file, and a test that is run; what it
changes is found before a night of mutants is.
"""

import json
import re
from collections import defaultdict
from typing import Any

import pytest

from support.documents.code_blocks import ROOT
from support.sampling import COLLECTED

MUTANTS: list[dict[str, Any]] = json.loads((ROOT / "tools/mutants.json").read_text("utf-8"))


def test_names_are_unique() -> None:
    names = [mutant["name"] for mutant in MUTANTS]
    assert len(set(names)) == len(names)


def test_each_line_stands_once_in_its_file() -> None:
    files = {m["file"] for m in MUTANTS}
    texts = {f: (ROOT / f).read_text("utf-8") if (ROOT / f).exists() else "" for f in files}
    stale = [m["name"] for m in MUTANTS if texts[m["file"]].count(m["old"]) != 1]
    assert stale == []
    assert [m["name"] for m in MUTANTS if m["old"] == m["new"]] == []


def test_each_test_is_run_where_its_mutant_says(request: pytest.FixtureRequest) -> None:
    """By the suite, or by the audit. In a run of some files, of these files' mutants."""
    collected = request.config.stash[COLLECTED]
    files = {test.partition("::")[0] for test in collected}
    run: dict[str, set[bool]] = defaultdict(set)
    for name, suite in collected.items():
        for each in named(name):
            run[each].add(suite)
    lost = [
        (mutant["name"], test)
        for mutant in MUTANTS
        for test in mutant["test"].partition(" -k ")[0].split()
        if len(files) > MANY or test.partition("::")[0] in files
        if (not mutant.get("audit", False)) not in run[test]
    ]
    assert lost == []


def named(test: str) -> set[str]:
    """What names a test: its case, its function or class, its file, its folders."""
    function = test.partition("[")[0]
    ends = re.finditer(r"::|/", function)
    return {test, function} | {function[: end.start()] for end in ends}


MANY = 300
"""Files of tests: so many are collected by a run of all of them."""
