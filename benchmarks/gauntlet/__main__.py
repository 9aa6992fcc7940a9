# SPDX-License-Identifier: Apache-2.0
"""python -m benchmarks.gauntlet [--reps R] [--eps E …] [--kind TEXT] [--only TEXT] [--json FILE]"""

import argparse
import json
import math
import sys
from pathlib import Path

from benchmarks.gauntlet.models import every
from benchmarks.gauntlet.run import Outcome, run

REPS = 24  # samples of a model: a share of 5 % is then known to within 4 %


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gauntlet")
    parser.add_argument("--reps", type=int, default=REPS, help="samples of each model")
    parser.add_argument("--eps", type=float, nargs="+", help="instead of each model's own")
    parser.add_argument("--kind", default="", help="a part of a kind's name, as glm:poisson")
    parser.add_argument("--only", default="", help="a part of a model's name")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    return parser.parse_args()


def stored(outcome: Outcome) -> dict:
    """An outcome as JSON; what is not a number is null."""
    lines = [
        {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in line.json().items()}
        for line in outcome.lines
    ]
    reasons = {k: getattr(outcome, k) for k in ("refused", "skipped", "silent", "broken")}
    name, kind = outcome.question.name, outcome.question.kind
    return {"model": name, "kind": kind, "lines": lines, **{k: v for k, v in reasons.items() if v}}


def text(reps: int, found: list[Outcome]) -> str:
    whole = {"reps": reps, "models": [stored(each) for each in found]}
    return json.dumps(whole, indent=1) + "\n"


def main() -> int:
    """1 if a model broke."""
    given = arguments()
    asked = [q for q in every() if given.only in q.name and given.kind in q.kind]
    found = []
    for outcome in run(asked, given.reps, given.eps):
        found.append(outcome)
        if given.json:  # at each, so that a run that is stopped keeps what it has
            given.json.write_text(text(given.reps, found), encoding="utf-8")
    skipped = [each.question.name for each in found if each.skipped]
    if skipped:
        print(f"!! {len(skipped)} models were SKIPPED, their tables are not here: {skipped}")
    broken = [each.question.name for each in found if each.broken]
    if broken:
        print(f"!! {len(broken)} models BROKE: {broken}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
