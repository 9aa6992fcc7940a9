# SPDX-License-Identifier: Apache-2.0
"""Table 1 by bare requests: what is chosen is forecast with its price, and what was released is
printed for nothing, with the client's cells.
"""

import html
import json
from dataclasses import replace
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from reticent.kinds.describe import Description
from reticent_server.domain.query import Privacy
from reticent_server.kinds.count.kind import Count
from reticent_server.kinds.describe.kind import Describe
from reticent_server.pipeline.answer import Ask, answer
from reticent_server.workbench.columns import labels
from support.attacks.seeded_noise import seed_noise
from support.installations.bench import Bench


def test_columns_and_a_group_lead_to_the_price(bench: Bench) -> None:
    ana = bench.browser("ana")
    place = "/workbench/datasets/people/table-1"
    assert 'value="g"' in ana.get(place).text
    chosen = {"column": ["y", "k", "g"], "by": "b", "epsilon": "3", "build": "1"}
    reply = ana.get(f"{place}?{urlencode(chosen, doseq=True)}")
    assert reply.status_code == 303
    fields = parse_qs(urlsplit(reply.headers["location"]).query)
    assert (fields["q.columns"], fields["q.by"]) == (["y, k, g"], ["b"])
    assert "Spend ε 3.00 and run" in ana.get(reply.headers["location"].partition("#")[0]).text
    none = ana.get(f"{place}?build=1&column=absent")
    assert (none.status_code, "Choose the columns." in none.text) == (422, True)
    assert bench.browser("bob").get(place).status_code == 404


def test_a_release_is_printed_for_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    seed_noise(monkeypatch, "table 1")
    services, browser = bench.services, bench.browser("ana")
    ana = services.access.authenticate(bench.keys["ana"])
    assert ana is not None
    asked = Describe(("y", "g"), by="b")
    release = json.loads(answer(services, ana, Ask("people", asked, Privacy(20.0))))
    other = json.loads(answer(services, ana, Ask("people", Count(), Privacy(1.0))))
    before = services.ledger.balances(ana.id)[0].spent
    place = f"/workbench/releases/{release['id']}/table-1"
    shown, table = html.unescape(browser.get(place).text), Description(release).table()
    written = html.unescape(browser.get(f"{place}/html").text)
    for row in table.rows:
        for cell in row:
            assert cell in shown
            assert cell in written
    assert "y, mean (SD)" in browser.get(f"{place}/markdown").text
    assert "b = 1" in shown
    assert services.ledger.balances(ana.id)[0].spent == before
    assert browser.get(f"{place}/json").status_code == 404
    assert browser.get(f"/workbench/releases/{other['id']}/table-1").status_code == 422
    assert "Table 1, as journals" in browser.get(f"/workbench/releases/{release['id']}").text
    assert bench.browser("bob").get(place).status_code == 404


def test_labels_are_said_to_those_who_may_ask_about_the_data_set(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release outlives a grant, and the name of a data set its columns."""
    services = bench.services
    facts = services.catalog.facts("people")
    columns = tuple(replace(column, label=f"the {column.name}") for column in facts.schema.columns)
    labelled = replace(facts, schema=replace(facts.schema, columns=columns))
    monkeypatch.setattr(services.catalog, "facts", lambda _: labelled)
    ana, bob = (services.access.authenticate(bench.keys[name]) for name in ("ana", "bob"))
    assert ana is not None
    assert bob is not None
    assert labels(services, ana, "people")["y"] == "the y"
    assert labels(services, bob, "people") == {}
