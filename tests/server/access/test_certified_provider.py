# SPDX-License-Identifier: Apache-2.0
"""Signing in at a provider that Authlib makes, and what somebody may do on the way: the provider's
own rules and ours, each against the other's.
"""

import http.client
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from reticent_server.access.oidc.fetching import Fetcher
from reticent_server.access.oidc.flow import Attempt, ClientRegistration, Flow, attempt, is_reply
from reticent_server.access.oidc.provider import Provider as Issuer
from reticent_server.access.oidc.tokens import Claims, Tokens
from reticent_server.domain.clock import SystemClock
from reticent_server.errors import Unavailable
from support.processes.certified_provider import (
    OTHER,
    OTHER_REDIRECT,
    REDIRECT,
    CertifiedProvider,
    certified_provider,
)
from support.processes.identity_provider import CLIENT, SECRET


@dataclass
class ProviderVisits:
    """What is asked of a running provider, as this server, and by a browser."""

    provider: CertifiedProvider
    flow: Flow

    def begun(self, number: int) -> Attempt:
        return attempt(
            lambda purpose, text: f"{purpose}{text}".encode().hex().ljust(64, "0"), str(number)
        )

    def visited(self, begun: Attempt, **changed: str | None) -> dict[str, str]:
        """What the browser comes back with, of an address with changed parameters; None: without
        it. Empty where the provider leads nowhere.
        """
        parts = urlsplit(self.flow.address(begun))
        given = dict(parse_qsl(parts.query)) | changed
        query = urlencode({name: value for name, value in given.items() if value is not None})
        browser = http.client.HTTPConnection(parts.netloc, timeout=60)
        try:
            browser.request("GET", f"{parts.path}?{query}")
            reply = browser.getresponse()
            reply.read()
        finally:
            browser.close()
        place = reply.getheader("Location")
        return {} if place is None else dict(parse_qsl(urlsplit(place).query)) | {"at": place}

    def finished(self, begun: Attempt, query: dict[str, str]) -> Claims | None:
        """None also where the provider refuses to exchange a code."""
        try:
            return self.flow.finished(begun, query)
        except Unavailable:
            return None


@pytest.fixture(scope="module")
def visits() -> Iterator[ProviderVisits]:
    with certified_provider() as provider:
        clock = SystemClock()
        issuer = Issuer(provider.issuer, Fetcher(), clock)
        own = ClientRegistration(CLIENT, REDIRECT, SECRET)
        yield ProviderVisits(provider, Flow(issuer, Tokens(issuer, clock, ("RS256",)), own, ""))
        issuer.close()


def test_somebody_signs_in(visits: ProviderVisits) -> None:
    begun = visits.begun(1)
    query = visits.visited(begun)
    assert query["at"].startswith(REDIRECT)
    assert is_reply(begun, query)
    claims = visits.finished(begun, query)
    assert claims is not None
    assert claims["sub"] == "s-carol"


def test_a_code_is_used_once(visits: ProviderVisits) -> None:
    begun = visits.begun(2)
    query = visits.visited(begun)
    assert visits.finished(begun, query) is not None
    assert visits.finished(begun, query) is None


def test_a_code_of_another_attempt_is_not_exchanged(visits: ProviderVisits) -> None:
    """Somebody's code in the victim's browser, with the victim's own state:
    the verifier differs."""
    attacker, victim = visits.begun(3), visits.begun(4)
    code = visits.visited(attacker)["code"]
    assert visits.finished(victim, {"code": code, "state": victim.state}) is None
    assert not is_reply(victim, {"code": code, "state": attacker.state})


def test_a_code_without_a_challenge_is_bound_by_its_nonce(visits: ProviderVisits) -> None:
    """Authlib gives a confidential client a code that no verifier is asked for."""
    attacker, victim = visits.begun(9), visits.begun(10)
    bare: dict[str, Any] = {"code_challenge": None, "code_challenge_method": None}
    code = visits.visited(attacker, **bare)["code"]
    assert visits.finished(victim, {"code": code, "state": victim.state}) is None


def test_a_code_of_another_client_is_not_exchanged(visits: ProviderVisits) -> None:
    begun = visits.begun(5)
    query = visits.visited(begun, client_id=OTHER, redirect_uri=OTHER_REDIRECT)
    assert query["at"].startswith(OTHER_REDIRECT)
    assert visits.finished(begun, query) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"redirect_uri": "https://evil.example/reply"},
        {"redirect_uri": REDIRECT + ".evil.example"},
        {"redirect_uri": "http" + REDIRECT.removeprefix("https")},
        {"client_id": "nobody"},
        {"client_id": OTHER},
    ],
    ids=lambda changed: "-".join(changed.values())[:40],
)
def test_a_code_goes_nowhere_else(visits: ProviderVisits, changed: dict[str, Any]) -> None:
    assert visits.visited(visits.begun(6), **changed) == {}


@pytest.mark.parametrize(
    "changed",
    [
        {"nonce": "another"},
        {"code_challenge": "A" * 43},
        {"code_challenge_method": "plain"},
        {"scope": "email"},
        {"nonce": None},
    ],
    ids=lambda changed: next(iter(changed)) + str(next(iter(changed.values()))),
)
def test_an_address_that_was_changed_opens_nothing(
    visits: ProviderVisits, changed: dict[str, Any]
) -> None:
    begun = visits.begun(8)
    assert visits.finished(begun, visits.visited(begun, **changed)) is None


def test_another_secret_is_refused(visits: ProviderVisits) -> None:
    issuer = Issuer(visits.provider.issuer, Fetcher(), SystemClock())
    own = ClientRegistration(CLIENT, REDIRECT, "not the secret")
    stranger = ProviderVisits(
        visits.provider, Flow(issuer, Tokens(issuer, SystemClock(), ("RS256",)), own, "")
    )
    try:
        begun = stranger.begun(7)
        assert stranger.finished(begun, stranger.visited(begun)) is None
    finally:
        issuer.close()
