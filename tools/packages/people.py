# SPDX-License-Identifier: Apache-2.0
"""The table that the walks load, and what they ask: y = 1 + 2x and an error whose sum is next to
nothing.
"""

from pathlib import Path

# enough for a slope of 2 to stand out of the noise at EPSILON, by a hundred of its standard errors
ROWS = 2_000
EPSILON = 8.0
CAP = ("--epsilon", "400", "--delta", "1e-4")
SHARE = ("--epsilon", "200", "--delta", "1e-5")
"""Of the analyst: for some dozen fits at EPSILON."""

SCHEMA = """\
description: Invented people
columns:
  y: {kind: numeric, lower: -10, upper: 10}
  x: {kind: numeric, lower: -5, upper: 5}
  g: {kind: categorical, levels: [a, b, c]}
"""


def write(folder: Path) -> None:
    """people.csv and people.yaml."""
    lines = ["y,x,g"]
    for i in range(ROWS):
        x, error = (i * 37 % 101) / 20 - 2.5, (i * 53 % 97) / 97 - 0.495
        lines.append(f"{1 + 2 * x + error:.4f},{x:.4f},{'abc'[i % 3]}")
    (folder / "people.csv").write_text("\n".join(lines) + "\n", "utf-8")
    (folder / "people.yaml").write_text(SCHEMA, "utf-8")


def commands(folder: Path | str, file: str = "people.csv") -> list[list[str]]:
    """The curator's commands from a file to an analyst with a budget; the last one prints ada's
    key.
    """
    files = [f"{folder}/{file}", "--schema", f"{folder}/people.yaml"]
    return [
        ["dataset", "load", "people", *files],
        ["budget", "set", "--dataset", "people", *CAP],
        ["analyst", "add", "ada", "--dataset", "people", *SHARE, "--json"],
    ]
