# SPDX-License-Identifier: Apache-2.0
"""Analysts who sign in to the workbench at the identity provider: who gets in, and that nobody else
does.
"""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

from support.installations.console import Desk, History, history
from support.installations.single_sign_on import (
    ANALYSTS_CALLBACK,
    CALLBACK,
    desk_of,
    link,
)
from support.processes.identity_provider import Provider, identity_provider

__all__ = ["history"]

BEGIN = "/workbench/oidc/sign-in"
WAIT = 60.0
"""Seconds: a busy machine is no failure."""


class World:
    """A served workbench beside a provider at which ana signs in."""

    def __init__(self, desk: Desk, provider: Provider) -> None:
        self.desk, self.provider = desk, provider
        self.browsers: list[httpx.Client] = []
        link(desk.services, provider, "ana", "s-ana")
        provider.claims["sub"] = "s-ana"

    def browser(self) -> httpx.Client:
        self.browsers.append(httpx.Client(base_url=self.desk.url, timeout=WAIT))
        return self.browsers[-1]

    def back(self, browser: httpx.Client, begin: str = BEGIN, **query: str) -> str:
        """Begins and signs in at the provider; where that sends the browser."""
        begun = browser.get(begin, params=query)
        assert begun.status_code == 303
        return httpx.get(begun.headers["location"], timeout=WAIT).headers["location"]

    def sign_in(self, browser: httpx.Client, **query: str) -> httpx.Response:
        return browser.get(self.back(browser, **query))


def is_inside(browser: httpx.Client) -> bool:
    return browser.get("/workbench/").status_code == 200


@pytest.fixture
def world(history: History, tmp_path: Path) -> Iterator[World]:
    with (
        identity_provider() as provider,
        desk_of(history, provider, tmp_path, ANALYSTS_CALLBACK) as desk,
    ):
        made = World(desk, provider)
        try:
            yield made
        finally:
            for browser in made.browsers:
                browser.close()


@pytest.mark.slow
def test_an_analyst_signs_in_asks_and_signs_out(world: World) -> None:
    browser = world.browser()
    assert BEGIN in browser.get("/workbench/sign-in").text
    reply = world.sign_in(browser, next="/workbench/datasets/people")
    assert 'url=/workbench/datasets/people"' in reply.text
    assert is_inside(browser)
    asked = {"kind": "mean", "q.column": "y", "epsilon": "1"}
    forecast = browser.get("/workbench/datasets/people", params=asked)
    assert "Spend ε 1.00 and run" in forecast.text
    assert browser.get("/workbench/datasets/secret").status_code == 404  # granted to bob alone
    assert browser.get("/console/").status_code == 303
    token = forecast.text.split('name="form_token" value="')[1][:96]
    assert browser.post("/workbench/sign-out", data={"form_token": token}).status_code == 303
    assert not is_inside(browser)
    assert world.desk.services.ledger.verify() == []


def test_those_who_may_not_ask_and_those_whom_nobody_linked_are_not_let_in(world: World) -> None:
    world.provider.claims["sub"] = "s-carol"
    curator = world.browser()
    assert world.sign_in(curator).status_code == 403
    world.provider.claims["sub"] = "s-unknown"
    stranger = world.browser()
    reply = world.sign_in(stranger)
    assert reply.status_code == 403
    assert "reticent analyst link NAME --oidc-subject s-unknown" in reply.text
    assert not is_inside(curator)
    assert not is_inside(stranger)


def test_a_session_ends_with_the_link_and_with_the_access(world: World) -> None:
    services, browser = world.desk.services, world.browser()
    world.sign_in(browser)
    assert is_inside(browser)
    services.identities.unlink("ana", by="t")
    assert not is_inside(browser)
    link(services, world.provider, "ana", "s-ana")
    world.sign_in(browser)
    assert is_inside(browser)
    services.access.revoke("ana", by="t")
    assert not is_inside(browser)


def test_a_reply_opens_only_the_browser_and_the_site_that_began(world: World) -> None:
    browser, other = world.browser(), world.browser()
    location = world.back(browser)
    assert other.get(location).status_code == 403
    query = urlsplit(location).query
    assert browser.get(f"{CALLBACK}?{query}").status_code == 403
    assert browser.get(location).status_code == 200
    assert browser.get(location).status_code == 403  # once
    assert not is_inside(other)
    assert browser.get("/console/").status_code == 303


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "n"},
        {"aud": "another"},
        {"exp": 1},
        {"iss": "https://other.example"},
        {"azp": "another"},
    ],
    ids=lambda claims: next(iter(claims)),
)
def test_a_token_that_says_something_else_opens_nothing(
    world: World, claims: dict[str, object]
) -> None:
    before, browser = world.provider.change, world.browser()
    world.provider.change = lambda said: before(said | claims)
    assert world.sign_in(browser).status_code in {401, 403}
    assert not is_inside(browser)
    world.provider.change = before
    state = {n: v[0] for n, v in parse_qs(urlsplit(world.back(browser)).query).items()}
    changed = urlencode(state | {"state": "0" * 64})
    assert browser.get(f"{ANALYSTS_CALLBACK}?{changed}").status_code == 403
    assert not is_inside(browser)
