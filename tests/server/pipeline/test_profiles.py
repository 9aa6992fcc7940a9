# SPDX-License-Identifier: Apache-2.0
"""A profile is forecast before it is charged, names what it does not resolve, and gives way to a
better one.
"""

import pytest

from reticent_server.errors import Conflict
from reticent_server.pipeline.profile import profile_forecast, release_profile
from reticent_server.pipeline.services import Services
from support.installations.small import without_reader

NAMES = {"y", "x", "k", "g", "b", "m"}


def spent(services: Services) -> int:
    (cap,) = (b for b in services.ledger.all_balances() if b.account == "population:people")
    return cap.spent.primary


def test_a_forecast_reads_nothing_and_costs_nothing(services: Services) -> None:
    before = spent(services)
    expected = profile_forecast(without_reader(services), "people", epsilon=1.0)
    assert expected["columns"].keys() == NAMES
    assert expected["columns"]["g"]["count_sd"] > 0
    assert 0 < expected["columns"]["y"]["rank_error"] <= 1
    assert spent(services) == before


def test_columns_below_the_noise_are_named(services: Services) -> None:
    assert set(profile_forecast(services, "people", epsilon=0.01)["unresolved"]) == NAMES
    assert profile_forecast(services, "people", epsilon=50.0)["unresolved"] == []
    few = set(profile_forecast(services, "people", epsilon=1.0)["unresolved"])
    assert few < NAMES, "ten values of k are harder to tell apart than the three levels of g"


def test_the_noise_is_what_the_release_says(services: Services) -> None:
    """Counts that add up to a public number have less noise than was forecast, never more."""
    expected = profile_forecast(services, "people", epsilon=4.0)["columns"]
    released = release_profile(services, "people", epsilon=4.0)["result"]["columns"]
    for name in ("k", "g", "b"):
        assert (
            0.5 * expected[name]["count_sd"]
            < released[name]["count_sd"]
            <= expected[name]["count_sd"]
        )


def test_a_better_one_is_charged_and_takes_its_place(services: Services) -> None:
    first = release_profile(services, "people", epsilon=0.5)
    with pytest.raises(Conflict, match="--instead"):
        release_profile(services, "people", epsilon=4.0)
    before = spent(services)
    second = release_profile(services, "people", epsilon=4.0, instead=True)
    assert second["id"] != first["id"]
    assert spent(services) > before
    profile = services.catalog.facts("people").profile
    assert profile is not None
    assert profile.release_id == second["id"]
