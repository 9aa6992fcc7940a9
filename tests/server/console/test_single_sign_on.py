# SPDX-License-Identifier: Apache-2.0
"""Signing in to the console at the identity provider, as a browser does it, and as an attacker
would.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

from reticent_server.access.identity_rows import Identity
from reticent_server.domain.roles import Role
from reticent_server.web.sessions import LONGEST_SECONDS
from reticent_server.web.single_sign_on import FLOW_SECONDS
from support.installations.console import Desk, History
from support.installations.single_sign_on import CALLBACK, STRONG, desk_of, link
from support.processes.identity_provider import Provider, identity_provider, unsigned

BEGIN = "/console/oidc/sign-in"
WAIT = 60.0
"""Seconds: a busy machine is no failure."""


@dataclass
class World:
    desk: Desk
    provider: Provider
    browsers: list[httpx.Client] = field(default_factory=list)

    def browser(self) -> httpx.Client:
        made = httpx.Client(base_url=self.desk.url, timeout=WAIT)
        self.browsers.append(made)
        return made

    def to_provider(self, browser: httpx.Client, **query: str) -> str:
        """Begins; where the browser is sent."""
        reply = browser.get(BEGIN, params=query)
        assert reply.status_code == 303
        assert "SameSite=lax" in reply.headers["set-cookie"]
        return reply.headers["location"]

    def back(self, browser: httpx.Client, **query: str) -> str:
        """Begins and signs in at the provider; where that sends the browser."""
        reply = httpx.get(self.to_provider(browser, **query), timeout=WAIT)
        assert reply.status_code == 302
        return reply.headers["location"]

    def sign_in(self, browser: httpx.Client, **query: str) -> httpx.Response:
        return browser.get(self.back(browser, **query))


def is_inside(browser: httpx.Client) -> bool:
    return browser.get("/console/").status_code == 200


@pytest.fixture
def world(history: History, tmp_path: Path) -> Iterator[World]:
    with identity_provider() as provider, desk_of(history, provider, tmp_path) as desk:
        made = World(desk, provider)
        try:
            yield made
        finally:
            for browser in made.browsers:
                browser.close()


@pytest.mark.slow
def test_somebody_who_is_linked_signs_in_and_out(world: World) -> None:
    browser = world.browser()
    page = browser.get("/console/sign-in")
    assert BEGIN in page.text
    reply = world.sign_in(browser, next="/console/budgets?account=population:people")
    assert reply.status_code == 200  # a page of this site: the session's cookie is strict
    assert 'url=/console/budgets?account=population:people"' in reply.text
    assert "SameSite=strict" in str(reply.headers.get_list("set-cookie"))
    assert is_inside(browser)
    copy = world.browser()
    copy.cookies.update(browser.cookies)
    assert is_inside(copy)
    token = browser.get("/console/").text.split('name="form_token" value="')[1][:96]
    assert browser.post("/console/sign-out", data={"form_token": token}).status_code == 303
    assert not is_inside(browser)
    assert not is_inside(copy)
    assert world.desk.services.ledger.verify() == []


def test_signing_in_over_a_session_ends_it(world: World) -> None:
    """As with a key: who has a copy of the old cookie is out."""
    browser, copy = world.browser(), world.browser()
    world.sign_in(browser)
    copy.cookies.update(browser.cookies)
    assert is_inside(copy)
    world.sign_in(browser)
    assert (is_inside(browser), is_inside(copy)) == (True, False)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"sub": "s-new", "email": "Eve@X.example", "email_verified": True}, 200),
        ({"sub": "s-new", "email": "eve@x.example", "email_verified": False}, 403),
        ({"sub": "s-other", "email": "eve@x.example", "email_verified": True}, 403),
        ({"sub": "s-new"}, 403),
        (None, 403),
    ],
)
def test_an_address_that_is_said_at_userinfo_alone(
    world: World, said: dict[str, Any] | None, status: int
) -> None:
    services, provider = world.desk.services, world.provider
    services.identities.unlink("carol", by="t")
    services.identities.link("carol", Identity(provider.issuer, "email", "eve@x.example"), by="t")
    provider.claims, provider.userinfo = {"sub": "s-new"} | STRONG, said
    assert world.sign_in(world.browser()).status_code == status


def test_keys_that_are_rotated_twice_in_a_moment(world: World) -> None:
    for number in (1, 2, 3):
        world.provider.keys, world.provider.key = [number], number
        assert world.sign_in(world.browser()).status_code == 200


@pytest.mark.slow
def test_a_session_ends_when_the_server_says_so(world: World) -> None:
    services, browser = world.desk.services, world.browser()
    for end in (
        lambda: services.sign_ins.end_all("carol", by="t"),
        lambda: services.identities.unlink("carol", by="t"),
        lambda: services.access.revoke("carol", by="t"),
    ):
        world.sign_in(browser)
        assert is_inside(browser)
        end()
        assert not is_inside(browser)
        if not services.access.curators()[0].revoked:
            services.identities.unlink("carol", by="t")
            link(services, world.provider, "carol", "s-carol")
    assert world.sign_in(browser).status_code == 403
    assert not is_inside(browser)


def test_what_is_sent_to_the_provider(world: World) -> None:
    query = parse_qs(urlsplit(world.to_provider(world.browser())).query)
    assert query["code_challenge_method"] == ["S256"]
    assert query["acr_values"] == ["gold"]
    assert (len(query["state"][0]), len(query["nonce"][0])) == (64, 64)
    others = parse_qs(urlsplit(world.to_provider(world.browser())).query)
    for name in ("state", "nonce", "code_challenge"):
        assert query[name] != others[name]


def test_a_reply_that_was_used_is_used_up(world: World) -> None:
    """A replayed state, with the used code, and with a fresh one that the provider would take."""
    browser = world.browser()
    address = world.to_provider(browser)
    cookies = dict(browser.cookies)
    first, second = (httpx.get(address, timeout=WAIT).headers["location"] for _ in range(2))
    assert browser.get(first).status_code == 200
    for replayed in (first, second):
        other = world.browser()
        other.cookies.update(cookies)
        assert other.get(replayed).status_code == 403
        assert not is_inside(other)


def test_a_reply_belongs_to_the_browser_that_began(world: World) -> None:
    """Nobody is signed in as somebody else by a link, with or without a sign-in of their own
    begun.
    """
    location = world.back(world.browser())
    victim = world.browser()
    assert victim.get(location).status_code == 403
    world.to_provider(victim)
    assert victim.get(location).status_code == 403
    assert not is_inside(victim)
    assert not is_inside(world.browser())


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "changed",
    [
        {"state": ""},
        {"state": "0" * 64},
        {"iss": "https://another.example"},
        {"code": ""},
        {"code": "code-99"},
    ],
)
def test_a_changed_reply_is_refused(world: World, changed: dict[str, str]) -> None:
    browser = world.browser()
    query = {n: v[0] for n, v in parse_qs(urlsplit(world.back(browser)).query).items()}
    reply = browser.get(f"{CALLBACK}?{urlencode(query | changed)}")
    assert reply.status_code in {401, 403}
    assert not is_inside(browser)


def test_a_changed_or_old_beginning_is_refused(world: World) -> None:
    browser = world.browser()
    location = world.back(browser)
    name, value = next(iter(browser.cookies.items()))
    changed = world.browser()
    changed.cookies.set(name, value.replace("/console/", "/console/x"))
    assert changed.get(location).status_code == 403
    world.desk.clock.sleep(FLOW_SECONDS + 1)
    assert browser.get(location).status_code == 403
    assert not is_inside(browser)


CLAIMS = {
    "another nonce": {"nonce": "n"},
    "no nonce": {"nonce": None},
    "another audience": {"aud": "another"},
    "another issuer": {"iss": "https://another.example"},
    "expired": {"exp": 1},
    "another party": {"azp": "another"},
    "an unknown subject": {"sub": "s-unknown"},
    "an analyst": {"sub": "s-ana"},
    "no class": {"acr": None},
    "another class": {"acr": "bronze"},
    "no second factor": {"amr": ["pwd"]},
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", CLAIMS)
def test_a_token_that_says_something_else_opens_nothing(world: World, name: str) -> None:
    link(world.desk.services, world.provider, "ana", "s-ana")
    before, browser = world.provider.change, world.browser()
    world.provider.change = lambda claims: before(claims | CLAIMS[name])
    reply = world.sign_in(browser)
    assert reply.status_code in {401, 403}
    assert "reticent-sign-in" not in browser.cookies
    assert not is_inside(browser)
    world.provider.change = before
    assert world.sign_in(browser).status_code == 200
    assert is_inside(browser)


def test_a_token_that_nobody_has_signed_opens_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def token(_self: Provider, **claims: object) -> str:
        said = {"iss": world.provider.issuer, "aud": "reticent console", "exp": 1 << 33, "iat": 1}
        return unsigned({"alg": "none"}, said | STRONG | {"sub": "s-carol"} | claims)

    monkeypatch.setattr(Provider, "token", token)
    browser = world.browser()
    assert world.sign_in(browser).status_code == 401
    assert not is_inside(browser)


def test_the_unknown_are_told_what_to_have_linked(world: World) -> None:
    world.provider.claims["sub"] = '"><script>x; rm'
    reply = world.sign_in(world.browser())
    assert reply.status_code == 403
    assert "--oidc-subject" in reply.text
    assert "<script>x" not in reply.text
    assert "--oidc-subject &#39;" in reply.text  # one word for the shell of whoever copies it


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "place", ["https://evil.example/", "//evil.example", "/v1/x", "/console/\n"]
)
def test_signing_in_leads_nowhere_else(world: World, place: str) -> None:
    reply = world.sign_in(world.browser(), next=place)
    assert 'content="0; url=/console/"' in reply.text


def test_a_provider_that_refuses_or_is_away(world: World) -> None:
    browser = world.browser()
    state = parse_qs(urlsplit(world.to_provider(browser)).query)["state"][0]
    reply = browser.get(CALLBACK, params={"error": "access_denied", "state": state})
    assert reply.status_code == 401
    location = world.back(browser)
    world.provider.down = True
    assert browser.get(location).status_code == 503
    assert not is_inside(browser)


def test_a_secret_in_the_form_where_the_provider_takes_no_other(world: World) -> None:
    world.provider.methods = ["client_secret_post"]
    assert world.sign_in(world.browser()).status_code == 200


def test_sessions_last_as_long_as_those_of_keys(world: World) -> None:
    browser = world.browser()
    world.sign_in(browser)
    world.desk.clock.sleep(LONGEST_SECONDS + 1)
    assert not is_inside(browser)


def test_a_page_shows_who_signs_in_as_whom(world: World) -> None:
    link(world.desk.services, world.provider, "ana", "<b>s-ana</b>")
    browser = world.browser()
    world.sign_in(browser)
    page = browser.get("/console/analysts/ana").text
    assert "<code>sub</code> &lt;b&gt;s-ana&lt;/b&gt;" in page
    assert "Signs in as" not in browser.get("/console/analysts/bob").text


def test_without_a_provider_there_is_no_such_door(desk: Desk) -> None:
    with httpx.Client(base_url=desk.url, timeout=WAIT) as browser:
        assert BEGIN not in browser.get("/console/sign-in").text
        assert browser.get(BEGIN).status_code in {303, 404}
        assert browser.get(BEGIN).headers.get("location", "/console").startswith("/console")


def test_roles_are_the_consoles(world: World) -> None:
    """Somebody of the staff who may see no page is not let in."""
    services = world.desk.services
    services.access.set_roles("carol", frozenset({Role.OPERATOR}), by="t")
    assert world.sign_in(world.browser()).status_code == 403
