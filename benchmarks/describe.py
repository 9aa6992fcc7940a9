# SPDX-License-Identifier: Apache-2.0
"""Error and coverage of descriptions, by figure: python -m benchmarks describe.

Tables of a normal, a skewed (log-normal), a whole (Poisson), a categorical column, and one with
missing cells, by a group of 30 %. The error is the root mean square distance from the truth,
relative to that of the same figure of the same table without noise, values clipped to the declared
bounds; the truth is that of sixteen million records, whose own error is a ninth of that of the
largest tables. Planned, mapped and released by the server's own
code, without a profile and with one.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.named_tests import answer, offer
from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.kinds.describe.figures import (
    DescribedColumn,
    DescribedGroup,
    Description,
    Figure,
)
from reticent_server.kinds.describe.kind import KIND, Describe

SIZES, EPSILONS = (2000, 20_000, 200_000), (0.5, 1.0, 4.0)
REPS = {
    2000: 200,
    20_000: 100,
    200_000: 40,
}  # tables: a coverage of .95 over 40 figures has an error below .01
LARGE = 16_000_000
COLUMNS = (
    Column("normal", ColumnKind.NUMERIC, -10.0, 10.0),
    Column("skewed", ColumnKind.NUMERIC, 0.0, 200.0),
    Column("whole", ColumnKind.INTEGER, 0.0, 9.0),
    Column("level", ColumnKind.CATEGORICAL, 0.0, 3.0, ("a", "b", "c", "d")),
    Column("beta", ColumnKind.NUMERIC, 0.0, 1.0, (), ("",)),
    Column("group", ColumnKind.BOOLEAN, 0.0, 1.0),
)
Table = dict[str, Any]


def table(n: int, seed: int) -> tuple[Table, Any]:
    """n records, and which of them miss `beta`."""
    rng = np.random.default_rng(seed)
    group = (rng.random(n) < 0.3) * 1.0
    gone = rng.random(n) < 0.1
    columns = {
        "normal": np.clip(rng.normal(size=n) + 0.5 * group, -10, 10),
        "skewed": np.clip(np.exp(1 + 0.8 * rng.normal(size=n)), 0, 200),
        "whole": np.clip(rng.poisson(2 + group), 0, 9) * 1.0,
        "level": rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05]) * 1.0,
        "beta": np.where(gone, 0.0, rng.beta(2, 5, n)),
        "group": group,
    }
    return columns, gone


class Truth:
    """Figures without noise of one table; those of a column, cut alike, are computed once."""

    def __init__(self, found: Table, gone: Any) -> None:
        self.found, self.gone = found, gone
        self.used = [np.ones(len(gone), bool), *(found["group"] == g for g in (0, 1))]
        self.quartiles: dict[tuple[str, int], Any] = {}
        self.known: dict[Any, list[tuple[str, float]]] = {}

    def figures(self, column: DescribedColumn, place: int) -> list[tuple[str, float]]:
        """In the order of `figures`; place: 0 all records, then the groups."""
        key = (column.column, place, column.clipped)
        if key not in self.known:
            self.known[key] = list(self._figures(column, place))
        return self.known[key]

    def _figures(self, column: DescribedColumn, place: int) -> Iterator[tuple[str, float]]:
        name, used = column.column, self.used[place]
        if name == "beta":
            yield "missing", float(self.gone[used].mean())
            used = used & ~self.gone
        values = self.found[name][used]
        if column.levels and name != "whole":
            yield from (("share", float(np.mean(values == k))) for k in range(len(column.levels)))
            return
        clipped = np.clip(values, *(column.clipped or (-np.inf, np.inf)))
        yield "mean", float(clipped.mean())
        yield "standard deviation", float(clipped.std())
        if (name, place) not in self.quartiles:
            law = "inverted_cdf" if name == "whole" else "linear"
            self.quartiles[name, place] = np.quantile(values, (0.25, 0.5, 0.75), method=law)  # type: ignore[call-overload]
        yield from (("quartile", float(q)) for q in self.quartiles[name, place])


def figures(group: DescribedGroup) -> Iterator[Figure]:
    """In the order of Truth.figures."""
    for figure in (group.missing, group.mean, group.standard_deviation):
        if figure is not None:
            yield figure
    yield from group.quartiles or group.shares or ()


def main() -> None:
    large = Truth(*table(LARGE, 999))
    print(
        f"{'n':>7} {'epsilon':>7} {'profile':>7}  figure: error relative to none without noise, "
        "coverage"
    )
    for n in SIZES:
        for epsilon in EPSILONS:
            for profiled in (False, True):
                lines = "; ".join(line(n, epsilon, large, profiled=profiled))
                print(f"{n:>7} {epsilon:>7} {'yes' if profiled else 'no':>7}  {lines}", flush=True)


def line(n: int, epsilon: float, large: Truth, *, profiled: bool) -> Iterator[str]:
    facts = DatasetFacts("bench", "bench", 1, "v", n, Schema(COLUMNS))
    if profiled:
        other, _ = table(100_000, 998)
        names = ("normal", "skewed", "beta")
        known = {
            k: ColumnProfile(quantiles=tuple(np.quantile(other[k], PROFILE_PROBABILITIES)))
            for k in names
        }
        facts = replace(facts, profile=Profile(known))
    planned = KIND.plan(facts, Describe(by="group"), offer(epsilon))
    errors: dict[str, list[float]] = defaultdict(list)
    held: dict[str, list[bool]] = defaultdict(list)
    for seed in range(REPS[n]):
        own, gone = table(n, seed)
        found: Description = answer(planned, own, {"beta": gone})
        mine = Truth(own, gone)
        for column in found.columns:
            for place, group in enumerate(column.groups):
                pairs = zip(
                    figures(group),
                    mine.figures(column, place),
                    large.figures(column, place),
                    strict=True,
                )
                for figure, (name, plain), (_, truth) in pairs:
                    low, high = figure.confidence_interval
                    held[name].append(low <= truth <= high)
                    if column.column != "whole" or name != "quartile":
                        errors[f"{name} {column.column} {place}"].append(
                            (figure.value - truth) ** 2
                        )
                        errors[f"{name} {column.column} {place} plain"].append((plain - truth) ** 2)
    for name, hits in held.items():
        ratios = [
            np.sqrt(np.mean(v) / np.mean(errors[f"{k} plain"]))
            for k, v in errors.items()
            if k.startswith(f"{name} ") and not k.endswith("plain")
        ]
        yield f"{name} {np.median(ratios):.2f}, {np.mean(hits):.3f}"


if __name__ == "__main__":
    main()
