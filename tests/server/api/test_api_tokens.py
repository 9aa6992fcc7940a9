# SPDX-License-Identifier: Apache-2.0
"""Bearer tokens of the identity provider at the HTTP interface, beside keys."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from reticent_server.domain.roles import Role
from reticent_server.errors import Unavailable
from reticent_server.pipeline.services import Services
from support.installations.single_sign_on import link, with_provider
from support.installations.small import Api, Installation, opened, request_body
from support.processes.identity_provider import Provider, identity_provider, unsigned

STRONG = {"acr": "gold", "amr": ["pwd", "otp"]}


@pytest.fixture
def provider() -> Iterator[Provider]:
    with identity_provider() as running:
        yield running


def served(installation: Installation, provider: Provider, **changes: Any) -> "Iterator[Services]":
    folder = installation.directory
    with opened(with_provider(installation.settings, provider, folder, **changes)) as services:
        assert provider.asked == []
        link(services, provider, "ana", "s-ana")
        services.access.add_curator("oscar", frozenset({Role.OPERATOR}), by="t")
        services.access.add_curator("audrey", frozenset({Role.AUDITOR}), by="t")
        link(services, provider, "audrey", "s-audrey")
        yield services


@pytest.fixture
def services(installation: Installation, provider: Provider) -> Iterator[Services]:
    yield from served(installation, provider)


def codes(services: Services, token: str) -> tuple[int, str]:
    reply = Api(services, token).get("/v1/datasets")
    return reply.status_code, "" if reply.status_code == 200 else reply.json()["code"]


def test_a_token_does_what_a_key_does(services: Services, provider: Provider) -> None:
    api = Api(services, provider.token(sub="s-ana"))
    assert [d["name"] for d in api.get("/v1/datasets").json()["datasets"]] == ["people"]
    made = api.post("/v1/releases", request_body())
    assert made.status_code == 201
    own = Api(services, provider.token(sub="s-ana")).get(f"/v1/releases/{made.json()['id']}")
    assert own.json() == made.json()


def test_keys_go_on_and_ask_the_provider_nothing(
    services: Services, provider: Provider, installation: Installation
) -> None:
    assert codes(services, installation.keys["ana"]) == (200, "")
    assert codes(services, installation.keys["ana"][:-1] + "x")[0] == 401
    assert codes(services, "rk_0123456789abcdef_" + "x" * 43) == (401, "unauthorized")
    assert provider.asked == []


def test_tokens_of_nobody_here_or_for_others_are_refused(
    services: Services, provider: Provider
) -> None:
    """All with the same reply, so that nobody learns which subjects are linked."""
    refused = [
        provider.token(sub="s-unknown"),
        provider.token(sub="s-ana", aud="another"),
        provider.token(sub="s-ana", iss="https://another.example"),
        provider.token(sub="s-ana", exp=1),
        unsigned({"alg": "none"}, {"sub": "s-ana"}),
    ]
    bodies = {Api(services, token).get("/v1/datasets").text for token in refused}
    assert len(bodies) == 1
    assert '"unauthorized"' in bodies.pop()


def test_a_revoked_or_unlinked_analyst_is_refused_at_once(
    services: Services, provider: Provider
) -> None:
    token = provider.token(sub="s-ana")
    assert codes(services, token) == (200, "")
    services.identities.unlink("ana", by="t")
    assert codes(services, token) == (401, "unauthorized")
    link(services, provider, "ana", "s-ana")
    assert codes(services, token) == (200, "")
    services.access.revoke("ana", by="t")
    assert codes(services, token) == (401, "unauthorized")


def test_a_role_is_the_holders_and_not_the_tokens(services: Services, provider: Provider) -> None:
    token = provider.token(sub="s-audrey", roles=["analyst", "curator"], groups=["curator"])
    assert codes(services, token) == (403, "wrong_role")


def test_the_rate_limit_is_of_the_identity(installation: Installation, provider: Provider) -> None:
    for services in served(installation, provider, requests_per_minute=3):
        seen = [codes(services, provider.token(sub="s-ana", jti=str(i)))[0] for i in range(5)]
        assert seen == [200, 200, 200, 429, 429]


@pytest.mark.slow
def test_a_provider_that_is_away_is_said_to_be(services: Services, provider: Provider) -> None:
    provider.down = True
    assert codes(services, provider.token(sub="s-ana")) == (503, "unavailable")


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("of", ["staff", "everybody"])
def test_a_second_factor_can_be_asked_for(
    installation: Installation, provider: Provider, of: str
) -> None:
    asked = {"oidc_acr": "silver gold", "oidc_amr": "otp hwk", "oidc_assurance_of": of}
    weak = [{}, {"acr": "gold"}, {"amr": ["otp"]}, STRONG | {"acr": "bronze"}]
    weak += [STRONG | {"amr": ["pwd"]}, STRONG | {"amr": "otp"}, STRONG | {"acr": ["gold"]}]
    for services in served(installation, provider, **asked):
        assert codes(services, provider.token(sub="s-audrey", **STRONG)) == (403, "wrong_role")
        assert codes(services, provider.token(sub="s-ana", **STRONG)) == (200, "")
        for claims in weak:
            token = provider.token(sub="s-audrey", **claims)
            assert codes(services, token) == (401, "weak_sign_in")
            wanted = (200, "") if of == "staff" else (401, "weak_sign_in")
            assert codes(services, provider.token(sub="s-ana", **claims)) == wanted


def test_an_audience_of_its_own(installation: Installation, provider: Provider) -> None:
    for services in served(installation, provider, oidc_audience="https://api.example"):
        assert codes(services, provider.token(sub="s-ana")) == (401, "unauthorized")
        token = provider.token(sub="s-ana", aud="https://api.example")
        assert codes(services, token) == (200, "")


def test_without_a_provider_no_token_is_looked_at(
    installation: Installation, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> socket.socket:
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket, "create_connection", refuse)
    with opened(installation.settings) as services:
        assert services.single_sign_on is None
        assert codes(services, provider.token(sub="s-ana")) == (401, "unauthorized")
    assert provider.asked == []


@pytest.mark.audit
def test_its_libraries_are_imported_where_it_is_set_only(installation: Installation) -> None:
    program = (
        "import sys; from reticent_server.app import build_services, create_app; "
        "from reticent_server.settings import Settings; create_app(build_services(Settings())); "
        "sys.exit(bool({'authlib', 'joserfc', 'httpx'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=installation.environment, check=False
    )
    assert done.returncode == 0


def test_a_secret_that_cannot_be_read_stops_the_server(
    installation: Installation, provider: Provider, tmp_path: Path
) -> None:
    from reticent_server.errors import CuratorError

    for changes in (
        {"oidc_client_secret_file": tmp_path / "absent"},
        {"oidc_client_id": ""},
        {"oidc_client_id": "", "oidc_audience": "a"},
    ):
        provider.redirect = "http://127.0.0.1:1/console/oidc/callback"
        with pytest.raises(CuratorError):
            next(served(installation, provider, **changes))


@dataclass
class Hanging:
    """A provider that answers nobody until it is told to."""

    released: Event
    asked: int = 0

    def get(self, _url: str) -> dict[str, Any]:
        self.asked += 1
        self.released.wait()
        raise Unavailable("away")

    def close(self) -> None:
        """It holds no connection."""


FORGED = 60
"""More than there are threads for anything."""

WAIT = 60.0
"""Seconds within which somebody is answered who waits for nobody, on any machine."""


@pytest.mark.parametrize(
    ("path", "other"),
    [("/v1/budget", "/v1/budget"), ("/v1/plans", "/v1/budget"), ("/console/oidc/sign-in", "")],
)
def test_nobody_waits_behind_those_who_wait_for_the_provider(
    installation: Installation,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    other: str,
) -> None:
    provider.redirect = "http://127.0.0.1:1/console/oidc/callback"
    hanging = Hanging(Event())
    monkeypatch.setattr("reticent_server.access.oidc.composing.Fetcher", lambda: hanging)
    token = unsigned({"alg": "RS256", "kid": "x"}, {"sub": "s-ana"})
    method = "POST" if path == "/v1/plans" else "GET"

    async def scene(services: Services) -> None:
        async with Api(services, None).client() as web:
            forged = {"headers": {"Authorization": f"Bearer {token}"}}
            waiting = [
                asyncio.ensure_future(web.request(method, path, **forged)) for _ in range(FORGED)
            ]
            try:
                while not (hanging.asked or any(task.done() for task in waiting)):
                    await asyncio.sleep(0.01)
                for _ in range(300):  # until all have the thread that there is for them, or wait
                    await asyncio.sleep(0)
                async with asyncio.timeout(WAIT):
                    headers = {"Authorization": f"Bearer {installation.keys['ana']}"}
                    reply = await web.get(other or "/console/sign-in", headers=headers)
                assert reply.status_code == 200
                assert not any(task.done() for task in waiting)
            finally:
                hanging.released.set()
                replies = await asyncio.gather(*waiting)
            assert {each.status_code for each in replies} == {503}

    for services in served(installation, provider):
        asyncio.run(scene(services))
