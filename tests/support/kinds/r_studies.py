# SPDX-License-Identifier: Apache-2.0
"""Released studies of invented tables that R's analyses are tried on: open and shut gates, groups,
a heavy tail, filled cells.

The noise is the machine's, so that each making has its own; support.kinds.r_cases keeps them in R's
fixture.
"""

from typing import Any, Literal

import numpy as np

from reticent_server.kinds.study.kind import KIND, Study
from support.fits.panels import facts_of, panel
from support.fits.regressions import drive
from support.kinds import studies as plain
from support.seeds import seeded

ROWS = 40_000
"""Of an invented table: enough for open gates and clear tails at ε = 8."""
ALL = ("log(price)", "size", "I(size**2)", "grade", "lot", "C(town)", "C(town):size", "near")
"""Variables of the study that is whole; `lot` and `near` are instruments for size."""


def invented(rng: np.random.Generator) -> dict[str, Any]:
    """Columns of ROWS houses."""
    lot, near = rng.normal(10.0, 2.0, ROWS), (rng.random(ROWS) < 0.4) * 1.0
    hidden = rng.normal(size=ROWS)
    size = 5.0 + 0.6 * (lot - 10.0) + 1.2 * near + hidden
    grade = 3.0 + 0.5 * size + rng.normal(size=ROWS)
    town = rng.integers(0, 3, ROWS) * 1.0
    price = np.exp(
        1
        + 0.3 * size
        + 0.2 * grade
        + 0.3 * (town == 1)
        + 0.4 * hidden
        + 0.5 * rng.normal(size=ROWS)
    )
    gains = np.exp(rng.normal(4.0, 1.6, ROWS))
    found = {
        "price": price,
        "size": size,
        "grade": grade,
        "lot": lot,
        "town": town,
        "near": near,
        "gains": gains,
    }
    return {
        name: np.clip(column, 1e-3, 1e5) if name == "price" else column
        for name, column in found.items()
    }


def releases() -> dict[str, Any]:
    """Through the real recipe, by name."""
    table = invented(seeded(16))
    gone = {"size": seeded(17).random(ROWS) < 0.1}
    asked = {
        "whole": (Study(ALL, main="log(price) ~ size + grade"), 8.0),
        "groups": (
            Study(("log(price)", "size", "grade"), by="town", main="log(price) ~ size"),
            8.0,
        ),
        "noisy": (Study(("log(price)", "size", "I(size**2)", "grade")), 0.004),
        "bared": (Study(("log(price)", "size", "gains", "lot")), 8.0),
        "filled": (Study(("log(price)", "size", "grade"), missing="indicator"), 8.0),
    }
    holes = {name: gone if name == "filled" else {} for name in asked}
    found = {name: _released(table, holes[name], *each) for name, each in asked.items()}
    found |= {name: _of_persons(effects) for name, effects in OF_PERSONS.items()}
    return found | {name: _with_means(epsilon) for name, epsilon in WITH_MEANS.items()}


OF_PERSONS: dict[str, Literal["person"] | None] = {"persons": None, "within": "person"}
"""Studies of a panel of persons with several rows, and their effects."""


WITH_MEANS = {"means": 8.0, "means_noisy": 0.05}
"""Studies of columns and their person means, for random intercepts, and their epsilon."""


def _with_means(epsilon: float) -> dict[str, Any]:
    table, absent = panel(19, 5_000, 4, levels=False, correlation=0.0)
    own = seeded(20).normal(size=5_000).repeat(4) * ~absent
    table = {**table, "y": table["y"] + 0.4 * own, "own": own}
    query = Study(("y", "mean(y)", "x0", "mean(x0)", "x1", "mean(x1)", "own"))
    plan = KIND.plan(facts_of(table, absent, 4), query, plain.offer(epsilon))
    result = drive(plan.run(), plain.persons_block(table, absent)).result
    return dict(plain.read(query, result).release)


def _of_persons(effects: Literal["person"] | None) -> dict[str, Any]:
    table, absent = panel(18, 5_000, 4)
    query = Study(("y", "x0", "x1"), main="y ~ x0 + x1", effects=effects)
    plan = KIND.plan(facts_of(table, absent, 4), query, plain.offer(8.0))
    result = drive(plan.run(), plain.persons_block(table, absent)).result
    return dict(plain.read(query, result).release)


def _released(table: Any, holes: Any, query: Study, epsilon: float) -> dict[str, Any]:
    absent = ("NA",) if holes else ()
    columns = [
        plain.numeric("price", 1e-3, 1e5), plain.numeric("size", -10, 20, absent),
        plain.numeric("grade", -10, 20),
        plain.numeric("lot", -10, 30), plain.factor("town", "abc"), plain.boolean("near"),
        plain.numeric("gains", 0, 1e5),
    ]  # fmt: skip
    plan = plain.planned(table, columns, query, epsilon)
    return dict(plain.read(query, drive(plan.run(), plain.whole(table, holes)).result).release)
