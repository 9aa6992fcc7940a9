# SPDX-License-Identifier: Apache-2.0
"""Runs every benchmark, one after the other; `python -m benchmarks NAME …` runs the named ones."""

import importlib
import sys

NAMES = (
    "accuracy",
    "cells",
    "logistic",
    "glm",
    "curves",
    "speed",
    "planning",
    "gaussian_plans",
    "peers",
    "at_once",
    "scale",
    "persons",
    "dry_run",
    "sources",
    "service",
    "analysts",
    "depth",
    "no_reply",
    "quantile_intervals",
    "wages",
    "named_tests",
    "other_kinds",
    "synthetic",
    "study",
    "pooled",
    "rounds",
    "parity",
    "describe",
    "deadlines",
    "reply_times",
    "groups",
    "survival",
    "competing_risks",
    "hazards",
    "every_kind",
    "flood",
    "gate",
    "useless",
)


def main() -> None:
    for name in sys.argv[1:] or NAMES:
        if name not in NAMES:
            sys.exit(f"no benchmark {name}: there are {', '.join(NAMES)}")
        print(f"== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
