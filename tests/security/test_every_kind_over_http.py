# SPDX-License-Identifier: Apache-2.0
"""Every kind of the registry, asked over HTTP about two stored tables that differ in one record.

Short: the draws behind a reply are written down and played back for the neighbour, so what the pair
can lose is known; with nothing in a kind's example that names it here. Long (`-m audit`): real
draws by a running server, small charges many times, and a ρ that the replies prove to be spent: not
more than is charged. That fails by luck less than once in 10⁹ runs of all kinds (support.attacks.
black_box). Releases without noise are found out.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from reticent_server.kinds import KINDS
from reticent_server.mechanisms import noisy_sum
from support.attacks.neighbouring_pair import Pair, load_pair, neighbours, share_profile
from support.attacks.over_http import numbers, proved, served_here, share
from support.installations.small import Installation, copied
from support.kinds.examples import QUERIES

PRIVACY = {"epsilon": 2.0, "delta": 1e-6}
SMALL = {"epsilon": 0.5, "delta": 1e-6}
ROUNDING = 1e-6  # relative: losses are sums of float64
ROWS = 600  # with fewer a fit is bootstrapped, which takes long
CHANGED = "-10,5,9,c,1,1"  # as far out as the bounds allow
DRAWS = 150
"""For each table: half of them prove a ρ of .3 where one number tells the tables apart every time;
at SMALL some hundredth is charged."""

FIRST = {name.removesuffix(" 0"): q for name, q in QUERIES.items() if name.endswith(" 0")}
ASKED = FIRST | {"count": QUERIES["count 1"]}
"""Of all records neighbours have as many."""


@pytest.fixture(scope="module")
def pair(
    installation_template: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    place = tmp_path_factory.mktemp("every_kind") / "own"
    with copied(installation_template, place) as own:
        found = load_pair(own, *neighbours(ROWS, CHANGED))
        share_profile(found)
        yield found


def test_every_kind_that_analysts_may_ask_is_asked() -> None:
    assert set(FIRST) == {kind.name for kind in KINDS if kind.for_analysts}


@pytest.mark.sample(48)
@pytest.mark.parametrize("name", QUERIES)
def test_a_record_loses_no_more_than_is_charged(pair: Pair, name: str) -> None:
    assert share(pair, QUERIES[name], PRIVACY) <= 1 + ROUNDING


@pytest.mark.audit
@pytest.mark.parametrize("name", ASKED)
def test_replies_prove_no_more_than_is_charged(pair: Pair, name: str) -> None:
    with served_here(pair) as prober:
        found = prober.outcomes(ASKED[name], SMALL, DRAWS, every=numbers)
    (rho,) = {outcome.rho for side in found.values() for outcome in side}
    assert proved(found) <= rho


@pytest.mark.audit
@pytest.mark.parametrize("name", ["count", "mean", "histogram", "linear_regression"])
def test_replies_without_noise_are_found_out(
    installation_template: Installation,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    monkeypatch.setattr(noisy_sum, "_noisy", lambda sigma, sums: sums.astype(np.float64))
    with copied(installation_template, tmp_path / "own") as own:
        pair = load_pair(own, *neighbours(ROWS, CHANGED))
        with served_here(pair) as prober:
            found = prober.outcomes(ASKED[name], SMALL, DRAWS, every=numbers)
    (rho,) = {outcome.rho for side in found.values() for outcome in side}
    assert proved(found) > rho
