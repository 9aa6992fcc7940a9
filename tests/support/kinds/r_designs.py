# SPDX-License-Identifier: Apache-2.0
"""What R's functions of staggered_did, discontinuity and histogram are compared with: releases, and
what the Python client makes of them.

    cd tests && python -m support.kinds.r_designs    the Python client's answers about the
                                                     fixture's releases

Writes r/tests/testthat/designs.json: `releases` by name, `dynamic` (effects, errors and the
simultaneous band by set of controls), `honest` and `breakdown` (by arguments), `fuzzy` and
`density`. Releases are made anew where the file has none.
"""

import json
from collections.abc import Mapping
from itertools import product
from math import isfinite
from pathlib import Path
from typing import Any, Literal

import numpy as np

from reticent.kinds.discontinuity import DiscontinuityResults
from reticent.kinds.histogram import Histogram as Counts
from reticent.kinds.staggered_did import StaggeredDidResults
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.results import result_json
from reticent_server.domain.schema import Column, ColumnKind, Schema, Unit
from reticent_server.kinds.discontinuity.kind import KIND as DISCONTINUITY
from reticent_server.kinds.discontinuity.kind import Discontinuity
from reticent_server.kinds.histogram.kind import KIND as HISTOGRAM
from reticent_server.kinds.histogram.kind import Histogram
from reticent_server.kinds.staggered_did.kind import KIND as STAGGERED
from reticent_server.kinds.staggered_did.kind import StaggeredDid
from support.fits.regressions import drive
from support.kinds import studies as plain
from support.kinds.r_cases import plain_json
from support.seeds import seeded

FIXTURE = Path(__file__).resolve().parents[3] / "r/tests/testthat/designs.json"
ROWS, PERSONS, PERIODS, NEVER = 20_000, 4_000, 7, 99
CONTROLS: tuple[Literal["never", "not_yet"], ...] = ("never", "not_yet")
TRENDS: tuple[Literal["smoothness", "relative"], ...] = ("smoothness", "relative")
MOST = (0.0, 0.02, 0.5)
"""M of the honest intervals."""
AT = (None, 0, 2)
"""Times since treatment; None: the mean of all."""


def releases() -> dict[str, Any]:
    """Through the real recipes, by name."""
    rng = seeded(23)
    x = rng.uniform(-10, 10, ROWS)
    treated = (rng.random(ROWS) < 0.2 + 0.5 * (x >= 0)) * 1.0
    table: dict[str, Any] = {
        "x": x,
        "d": treated,
        "y": np.clip(0.1 * x + 0.8 * treated + rng.normal(size=ROWS), -20, 20),
    }
    columns = [plain.numeric("x", -10, 10), plain.numeric("y", -20, 20), plain.boolean("d")]
    bins = tuple(float(edge) for edge in np.linspace(-10, 10, 41))
    asked: Mapping[str, tuple[Any, Any, float]] = {
        "response": (DISCONTINUITY, Discontinuity("y", "x", 0.0, 5.0), 4.0),
        "treatment": (DISCONTINUITY, Discontinuity("d", "x", 0.0, 5.0), 4.0),
        "parabolas": (DISCONTINUITY, Discontinuity("y", "x", 0.0, 5.0, order=2), 4.0),
        "parabolas_treatment": (DISCONTINUITY, Discontinuity("d", "x", 0.0, 5.0, order=2), 4.0),
        "nowhere": (DISCONTINUITY, Discontinuity("d", "x", 5.0, 4.0), 4.0),
        "nowhere_response": (DISCONTINUITY, Discontinuity("y", "x", 5.0, 4.0), 4.0),
        "hidden": (DISCONTINUITY, Discontinuity("d", "x", 0.0, 5.0), 0.02),
        "histogram": (HISTOGRAM, Histogram("x", bins=bins), 1.0),
        "levels": (HISTOGRAM, Histogram("d"), 1.0),
    }
    found = {}
    for name, (kind, query, epsilon) in asked.items():
        plan = kind.plan(plain.facts_of(table, columns), query, plain.offer(epsilon))
        found[name] = _document(kind, query, drive(plan.run(), plain.whole(table)).result)
    return found | {"staggered": _staggered(rng)}


def _staggered(rng: np.random.Generator) -> dict[str, Any]:
    """Of a panel whose effect grows with time."""
    first, t = rng.choice([3, 5, NEVER], PERSONS), np.arange(PERIODS)
    since = t - first[:, None]
    y = rng.normal(size=(PERSONS, 1)) + 0.1 * t + 0.3 * (since >= 0) * (since + 1)
    y = y + 0.5 * rng.normal(size=(PERSONS, PERIODS))
    table = {
        "y": np.clip(y, -10, 10).ravel(),
        "first": np.repeat(first, PERIODS) * 1.0,
        "t": np.tile(t, PERSONS) * 1.0,
    }
    columns = (
        plain.numeric("y", -10, 10),
        Column("first", ColumnKind.INTEGER, 0, NEVER),
        Column("t", ColumnKind.INTEGER, 0, PERIODS - 1),
    )
    schema = Schema(columns, Unit("person", PERIODS))
    query = StaggeredDid("y", "first", "t", never=float(NEVER))
    facts = DatasetFacts("t", "t", 1, "v", PERSONS, schema)
    plan = STAGGERED.plan(facts.of_places(), query, plain.offer(4.0))
    absent = np.zeros(PERSONS * PERIODS, bool)
    result = drive(plan.run(), plain.persons_block(table, absent)).result
    return _document(STAGGERED, query, result)


def _document(kind: Any, query: Any, result: Any) -> dict[str, Any]:
    asked = {name: getattr(query, name) for name in _ASKED if hasattr(query, name)}
    return {
        "id": "rel_1",
        "dataset": "t",
        "version": 1,
        "query": plain_json({"kind": kind.name, **asked}),
        "result": plain_json(result_json(result)),
    }


_ASKED = ("y", "running", "cutoff", "bandwidth", "where", "order")


def answers(kept: Mapping[str, Any]) -> dict[str, Any]:
    """What the Python client makes of the releases."""
    found = StaggeredDidResults(kept["staggered"])
    honest = [
        [trends, M, at, found.honest(M, trends, at)] for trends, M, at in product(TRENDS, MOST, AT)
    ]
    breakdown = [[trends, at, found.breakdown(trends, at)] for trends, at in product(TRENDS, AT)]
    fuzzy = [[a, b, _fuzzy(kept[a], kept[b])] for a, b in FUZZY]
    test = Counts(kept["histogram"]).density_test(0.0, 6.0)
    density = [
        test.below, test.above, test.difference, test.standard_error, *test.interval,
        test.statistic, test.pvalue, *test.bins,
    ]  # fmt: skip
    made = {
        "dynamic": {name: _dynamic(found, name) for name in CONTROLS},
        "honest": honest,
        "breakdown": breakdown,
        "fuzzy": fuzzy,
        "density": density,
    }
    return dict(plain_json(made))


FUZZY = (
    ("response", "treatment"),
    ("treatment", "response"),
    ("parabolas", "parabolas_treatment"),
    ("nowhere_response", "nowhere"),
    ("response", "hidden"),
)


def _dynamic(found: StaggeredDidResults, control: Literal["never", "not_yet"]) -> Any:
    table = found.averages("dynamic", control)
    band = found.simultaneous(control=control)
    names = ("effect", "bse", "privacy_bse", "lower", "upper")
    return [list(table.index), *(table[name].to_numpy() for name in names), *band.T]


def _fuzzy(response: Any, treatment: Any) -> list[float | str]:
    """The effect and its ends."""
    found = DiscontinuityResults(response).fuzzy(DiscontinuityResults(treatment))
    return [_end(each) for each in (found.value, *found.interval)]


def _end(value: float) -> float | str:
    """A number, or R's name of what JSON has none for."""
    return value if isfinite(value) else "Inf" if value > 0 else "-Inf"


def main() -> None:
    made = json.loads(FIXTURE.read_text("utf-8"))["releases"] if FIXTURE.exists() else releases()
    document = {"releases": made, **answers(made)}
    FIXTURE.write_text(json.dumps(document, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
