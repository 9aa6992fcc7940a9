# SPDX-License-Identifier: Apache-2.0
"""A class name means one thing in the whole repository.

What client and server both have is two sides of one contract: a question and its release, a plan, a profile, the errors, and
what a study's analyses are computed with. Within either, a name stands once, and nothing that only tools or benchmarks have
takes a name from them. Names with an underscore are read in their own file alone.
"""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("server", "client", "tools", "benchmarks")
SIDES = {"server", "client"}


def test_a_class_name_means_one_thing() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(str(path.relative_to(ROOT)))
    assert len(places) > 500
    twice = {
        name: paths
        for name, paths in places.items()
        if len(paths) > 1 and not (len(paths) == 2 and {p.split("/")[0] for p in paths} == SIDES)
    }
    assert not twice, "give one of them a name that says what it is"
