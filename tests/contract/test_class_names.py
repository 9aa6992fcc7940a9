# SPDX-License-Identifier: Apache-2.0
"""A class name means one thing in the whole repository.

What client and server both have is two sides of one contract: a question and its release, a plan, a
profile, the errors, and what a study's analyses are computed with. Within either, a name stands
once, and nothing that only tools or benchmarks have takes a name from them. Names with an
underscore are read in their own file alone.
"""

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("server", "client", "tools", "benchmarks")
SIDES = {"server", "client"}
CLASS = re.compile(r"^ *class ([A-Za-z]\w*)[\[(:]", re.MULTILINE)
"""A class statement as the formatter writes it: a parser takes 30 times as long over the whole
repository.
"""


def classes(path: Path, names: set[str]) -> set[str]:
    """Those of the names that are classes of a file, and no words in a text of it."""
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    return names & {node.name for node in nodes if isinstance(node, ast.ClassDef)}


def test_a_class_name_means_one_thing() -> None:
    lines: dict[str, list[Path]] = defaultdict(list)
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for name in CLASS.findall(path.read_text("utf-8")):
                lines[name].append(path)
    assert len(lines) > 500
    several = {name: paths for name, paths in lines.items() if not alone(paths)}
    places = {n: [path for path in paths if classes(path, {n})] for n, paths in several.items()}
    twice = {name: paths for name, paths in places.items() if not alone(paths)}
    assert not twice, "give one of them a name that says what it is"


def alone(paths: list[Path]) -> bool:
    """Whether a name may stand in these files."""
    sides = {path.relative_to(ROOT).parts[0] for path in paths}
    return len(paths) == 1 or (len(paths) == 2 and sides == SIDES)
