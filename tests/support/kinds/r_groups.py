# SPDX-License-Identifier: Apache-2.0
"""What R's Table 1 and differences of groups are compared with: releases, and what the Python
client makes of them.

    cd tests && python -m support.kinds.r_groups     the Python client's answers about the
                                                     fixture's releases

Writes r/tests/testthat/groups.json: `releases` by name, `tests` (each description's standardised
differences and p-values by column), `differences` (by adjustment) and `brier`. Releases are made
anew where the file has none.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from reticent.kinds.binned_residuals import BinnedResiduals as Residuals
from reticent.kinds.describe import Description
from reticent.results.group_estimates import GroupEstimates
from reticent.results.named_test import NamedTest
from reticent_server.domain.results import result_json
from reticent_server.kinds.anova.kind import KIND as ANOVA
from reticent_server.kinds.anova.kind import Anova
from reticent_server.kinds.binned_residuals.kind import KIND as RESIDUALS
from reticent_server.kinds.binned_residuals.kind import BinnedResiduals
from reticent_server.kinds.describe.kind import KIND as DESCRIBE
from reticent_server.kinds.describe.kind import Describe
from reticent_server.kinds.mean.kind import KIND as MEAN
from reticent_server.kinds.mean.kind import Mean
from support.fits.regressions import drive
from support.kinds import studies as plain
from support.kinds.r_cases import plain_json
from support.seeds import seeded

FIXTURE = Path(__file__).resolve().parents[3] / "r/tests/testthat/groups.json"
ADJUSTMENTS = ("none", "tukey", "holm", "bonferroni")
ROWS = 8_000


def releases() -> dict[str, Any]:
    """Through the real recipes, by name."""
    rng = seeded(21)
    two, four = (rng.random(ROWS) < 0.4) * 1.0, rng.integers(0, 4, ROWS) * 1.0
    table = {
        "two": two,
        "four": four,
        "x": np.clip(rng.normal(size=ROWS) + 0.4 * two + 0.2 * four, -8, 8),
        "wide": np.clip(rng.normal(size=ROWS), -1e3, 1e3),
        "level": np.minimum(rng.integers(0, 3, ROWS) + two, 2.0),
        "yes": (rng.random(ROWS) < 0.2 + 0.2 * two) * 1.0,
    }
    columns = [
        plain.boolean("two"), plain.factor("four", "abcd"), plain.numeric("x", -8, 8),
        plain.numeric("wide"),
        plain.factor("level", "uvw"), plain.boolean("yes"),
    ]  # fmt: skip
    described = ("x", "wide", "level", "yes")
    asked: Mapping[str, tuple[Any, Any]] = {
        "by_two": (DESCRIBE, Describe(described, by="two")),
        "by_four": (DESCRIBE, Describe(described, by="four")),
        "mean": (MEAN, Mean("x", by="four")),
        "anova": (ANOVA, Anova("x", "four")),
        "residuals": (
            RESIDUALS,
            BinnedResiduals("yes ~ two", (-1.3, 0.9), link="logit", bins=(0.0, 0.3, 0.6, 1.0)),
        ),
    }
    found = {}
    for name, (kind, query) in asked.items():
        plan = kind.plan(plain.facts_of(table, columns), query, plain.offer(2.0))
        result = plain_json(result_json(drive(plan.run(), plain.whole(table)).result))
        link = {"link": "logit"} if kind is RESIDUALS else {}
        found[name] = {"id": "rel_1", "query": {"kind": kind.name, **link}, "result": result}
    return found


def answers(kept: Mapping[str, Any]) -> dict[str, Any]:
    """What the Python client makes of the releases."""
    tests = {}
    for name in ("by_two", "by_four"):
        about = Description(kept[name])
        tests[name] = {
            c.column: [c.difference.value, c.difference.bse, c.statistic, c.df, c.pvalue]
            for c in about.comparisons()
        }
    differences = {}
    for name, of in (("mean", GroupEstimates), ("anova", NamedTest)):
        every = of(kept[name]).differences()
        differences[name] = {
            each: [every.values, every.bse, *every.conf_int(adjust=each).T, every.pvalues(each)]
            for each in ADJUSTMENTS
        }
    score = Residuals(kept["residuals"]).brier()
    brier = [score.value, score.bse, score.privacy_bse, *score.conf_int()]
    return dict(plain_json({"tests": tests, "differences": differences, "brier": brier}))


def main() -> None:
    made = json.loads(FIXTURE.read_text("utf-8"))["releases"] if FIXTURE.exists() else releases()
    document = {"releases": made, **answers(made)}
    FIXTURE.write_text(json.dumps(document, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
