# SPDX-License-Identifier: Apache-2.0
"""The audit of persons through HTTP: two stored registers that differ in all rows of one person,
asked as an analyst asks.

Short: every draw behind a reply is written down and played back for the neighbour
(support.attacks.recorder), so what the pair can lose is known and not estimated. Long (`-m audit`):
real draws by a running server, and what an analyst can prove from the replies
(support.attacks.black_box). In both, noise for one row where a person has m is rejected.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reticent_server.mechanisms import noisy_sum
from support.attacks.black_box import least_rho
from support.attacks.neighbouring_pair import SIDES, Pair, load_pair, of_persons
from support.attacks.over_http import served_here, share
from support.installations.small import SCHEMA, Installation, copied

M = 5
PANEL = SCHEMA.replace("columns:", f"unit: {{column: id, max_rows: {M}}}\ncolumns:")
LOW, HIGH = "-10,5,9,c,1,1", "10,5,0,c,1,1"
"""Rows at the ends of the bounds; k == 0 in HIGH alone."""

PEOPLE: dict[str, tuple[list[str], list[str]]] = {
    "one row, or all": ([LOW], [HIGH] * M),
    "all rows, or more": ([LOW] * M, [HIGH] * (M + 2)),
}
"""The first person of the two registers. Rows beyond m are left out at the load."""

QUERIES: dict[str, tuple[dict[str, Any], float]] = {
    "count": ({"kind": "count", "where": "k == 0"}, 0.99),
    "count, per": ({"kind": "count", "where": "k == 0", "per": "any"}, 0.99),
    "sum": ({"kind": "sum", "column": "y"}, 0.99),
    "sum, per": ({"kind": "sum", "column": "y", "per": "last"}, 0.99),
    "crosstab, per": ({"kind": "crosstab", "columns": ["k", "g"], "per": "first"}, 0.99),
    "median, per": ({"kind": "median", "column": "y", "per": "person"}, 0.9),
    "quantiles, per": (
        {"kind": "quantiles", "column": "y", "probabilities": [0.1, 0.5], "per": "person"},
        0.5,
    ),
    "mean": ({"kind": "mean", "column": "y"}, 0.7),
    "linear_regression": ({"kind": "linear_regression", "formula": "y ~ x"}, 0.02),
}
"""Queries, and the least share of their charge that the worst pair attains."""

PRIVACY = {"epsilon": 2.0, "delta": 1e-6}
ROUNDING = 1e-6  # relative: losses here are sums of float64


@pytest.fixture(scope="module")
def pairs(
    installation_template: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Pair]]:
    place = tmp_path_factory.mktemp("pairs")
    with ExitStack() as stack:
        own = {
            name: stack.enter_context(copied(installation_template, place / str(k)))
            for k, name in enumerate(PEOPLE)
        }
        yield {
            name: load_pair(own[name], *of_persons(60, M, *PEOPLE[name]), PANEL) for name in PEOPLE
        }


def noise_for_one_row(patch: pytest.MonkeyPatch) -> None:
    """The mistake: a person is taken for a row."""
    for name in ("sensitivity", "off_diagonal_scale"):
        right = getattr(noisy_sum, name)
        patch.setattr(noisy_sum, name, lambda part, f=right: f(replace(part, unit_rows=1)))


@pytest.mark.slow
@pytest.mark.sample(12)
@pytest.mark.parametrize("kind", QUERIES)
def test_a_person_loses_no_more_than_is_charged(pairs: dict[str, Pair], kind: str) -> None:
    query, floor = QUERIES[kind]
    shares = [share(pair, query, PRIVACY) for pair in pairs.values()]
    assert floor <= max(shares) <= 1 + ROUNDING


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", ["count", "mean"])
def test_noise_for_one_row_is_rejected(
    pairs: dict[str, Pair], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise_for_one_row(monkeypatch)
    assert max(share(pair, QUERIES[kind][0], PRIVACY) for pair in pairs.values()) > M


DRAWS = {"count": 4000, "mean": 4000, "median, per": 1000, "linear_regression": 500}
FEW_DRAWS = {"count": 600, "mean": 5000}
"""Of noise for one row, which loses m² times as much; a mean tells only the ratio of what it has
drawn.
"""


@pytest.mark.audit
@pytest.mark.parametrize(
    ("kind", "wrong"), [*((kind, False) for kind in DRAWS), ("count", True), ("mean", True)]
)
def test_replies_prove_no_more_than_is_charged(
    installation_template: Installation,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    wrong: bool,
) -> None:
    """wrong: with noise for one row, which counts and means give away."""
    if wrong:
        noise_for_one_row(monkeypatch)
    with copied(installation_template, tmp_path / "own") as own:
        pair = load_pair(own, *of_persons(60, M, *PEOPLE["one row, or all"]), PANEL)
        with served_here(pair) as prober:
            draws = (FEW_DRAWS if wrong else DRAWS)[kind]
            found = prober.outcomes(QUERIES[kind][0], PRIVACY, draws)
    left, right = (found[side] for side in SIDES)
    (rho,) = {o.rho for o in (*left, *right)}
    proved = max(least_rho(left, right), least_rho(right, left))
    assert (proved > rho) == wrong
