# SPDX-License-Identifier: Apache-2.0
"""A pooled study of two installations over HTTP: each charged by its own ledger, or none at all."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import reticent
from support.installations.small import Installation, copied, serving

AGREED: dict[str, Any] = {
    "protocol": 1,
    "study": {"variables": ["y", "x", "C(g)"]},
    "epsilon": 20.0,
    "columns": {
        "y": {"kind": "numeric", "bounds": [-10, 10]},
        "x": {"kind": "numeric", "bounds": [-5, 5]},
        "g": {"kind": "categorical", "levels": ["a", "b", "c"]},
    },
    "sites": {"north": {}, "south": {"epsilon": 30.0}},
}


@pytest.fixture(scope="module")
def sites(
    installation_template: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator["Sites"]:
    """Each site's data set, by its own server and key."""
    with ExitStack() as stack:
        found: dict[str, Any] = {}
        clients: list[Any] = []
        for name in ("north", "south"):
            folder = tmp_path_factory.mktemp("pooled") / name
            own = stack.enter_context(copied(installation_template, folder))
            server = stack.enter_context(serving(own))
            client = stack.enter_context(reticent.Client(server.url, key=own.keys["ana"]))
            clients.append(client)
            found[name] = client.dataset("people")
            poor_key = own.analyst("poor", epsilon=1.0, delta=1e-3)
            poor = stack.enter_context(reticent.Client(server.url, key=poor_key))
        yield Sites(found, clients, poor.dataset("people"))


@dataclass(frozen=True)
class Sites:
    """datasets: by site. clients: in the same order. poor: the last site's, for whoever may spend
    little there.
    """

    datasets: dict[str, Any]
    clients: list[Any]
    poor: Any

    @property
    def left(self) -> list[str]:
        """What every account has left, as a text."""
        return [str(client.budget()) for client in self.clients]


def test_a_site_that_does_not_agree_stops_all_before_any_charge(sites: Sites) -> None:
    before = sites.left
    columns = AGREED["columns"] | {"x": {"kind": "numeric", "bounds": [0, 5]}}
    with pytest.raises(reticent.InvalidQuery, match=r"Nothing was .*north: the bounds of x"):
        reticent.pooled(AGREED | {"columns": columns}, sites.datasets)
    lacking = AGREED["columns"] | {"z": {"kind": "numeric", "bounds": [0, 5]}}
    with pytest.raises(reticent.InvalidQuery, match="has no column z"):
        reticent.pooled(AGREED | {"columns": lacking}, sites.datasets)
    assert sites.left == before


def test_a_site_whose_budget_is_short_stops_all_before_any_charge(sites: Sites) -> None:
    before = sites.left
    with pytest.raises(reticent.InvalidQuery, match="budgets at south do not cover"):
        reticent.pooled(AGREED, {"north": sites.datasets["north"], "south": sites.poor})
    assert sites.left == before


def test_each_site_is_charged_its_own_and_once(sites: Sites) -> None:
    agreed = AGREED | {"epsilon": 19.0}  # which no other test asks
    before = sites.left
    found = reticent.pooled(agreed, sites.datasets)
    assert all(a != b for a, b in zip(before, sites.left, strict=True))
    assert [found[name].charged.epsilon for name in sites.datasets] == [19.0, 30.0]
    assert found.nobs == 800
    paid = sites.left
    again = reticent.pooled(agreed, sites.datasets)
    assert sites.left == paid
    formula = "y ~ x + site"
    np.testing.assert_array_equal(found.ols(formula).params, again.ols(formula).params)
    assert "site[south]" in found.ols(formula).names


def test_a_site_sees_the_protocol_and_nothing_of_another(sites: Sites) -> None:
    """What a site is sent is the same, byte for byte, whatever another site holds or answers."""
    terms = reticent.protocol(AGREED)
    sent = [terms.question(name) for name in terms.sites]
    assert sent[0] == sent[1] == {"variables": ["y", "x", "C(g)"]}
    found = reticent.pooled(terms, sites.datasets)
    for name in terms.sites:
        assert not set(found[name].query) & {"sites", "weights"}
        assert "north" not in str(found[name].query)
        assert "south" not in str(found[name].query)
