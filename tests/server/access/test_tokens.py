# SPDX-License-Identifier: Apache-2.0
"""Tokens of the identity provider: one that is valid, and every way in which one is not."""

import base64
import hmac
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from joserfc.jwk import RSAKey

from reticent_server.access.oidc.fetching import (
    FRESH_SECONDS,
    RETRY_SECONDS,
    STALE_SECONDS,
    Fetcher,
    safe_url,
)
from reticent_server.access.oidc.provider import Provider as Issuer
from reticent_server.access.oidc.tokens import LEEWAY_SECONDS, LONGEST_TOKEN, Tokens
from reticent_server.errors import Unavailable
from support.databases.migrated import SetClock
from support.processes.identity_provider import (
    CLIENT,
    Provider,
    identity_provider,
    rsa,
    signed,
    unsigned,
)

PATH = "/keys"


class TwoClocks(SetClock):
    """The time that never goes back is moved by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0

    def monotonic(self) -> float:
        return self.passed


@pytest.fixture
def clock() -> TwoClocks:
    return TwoClocks()


@pytest.fixture
def provider(clock: TwoClocks) -> Iterator[Provider]:
    with identity_provider() as running:
        running.now = lambda: clock.now().timestamp()
        yield running


@pytest.fixture
def tokens(provider: Provider, clock: TwoClocks) -> Iterator[Tokens]:
    issuer = Issuer(provider.issuer, Fetcher(), clock)
    yield Tokens(issuer, clock, ("RS256", "ES256"))
    issuer.close()


def test_a_token_of_the_provider_for_this_server_is_valid(
    tokens: Tokens, provider: Provider
) -> None:
    found = tokens.bearer(provider.token(email="c@x.example"), CLIENT)
    assert found is not None
    assert (found["sub"], found["email"]) == ("s-carol", "c@x.example")
    assert tokens.bearer(provider.token(aud=["other", CLIENT]), CLIENT) is not None
    header = {"alg": "RS256", "kid": "k1", "typ": "at+jwt"}
    assert tokens.bearer(provider.token(header), CLIENT) is not None
    assert tokens.bearer(provider.token({"alg": "RS256"}), CLIENT) is not None  # the only key
    assert provider.asked == ["/.well-known/openid-configuration", PATH]


NOW = int(SetClock().now().timestamp())


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "another"},
        {"aud": None},
        {"aud": []},
        {"aud": [CLIENT, 1]},
        {"aud": {CLIENT: 1}},
        {"iss": "https://another.example"},
        {"iss": None},
        {"iss": 1},
        {"exp": NOW - LEEWAY_SECONDS - 60},
        {"exp": None},
        {"exp": "never"},
        {"exp": True},
        {"exp": float("nan")},
        {"nbf": NOW + 3600},
        {"iat": NOW + 3600},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": "s" * 256},
        {"events": {"http://schemas.openid.net/event/backchannel-logout": {}}},
    ],
)
def test_a_claim_that_is_wrong_or_not_there_is_refused(
    tokens: Tokens, provider: Provider, claims: dict[str, Any]
) -> None:
    assert tokens.bearer(provider.token(), CLIENT) is not None
    assert tokens.bearer(provider.token(**claims), CLIENT) is None


def test_a_token_ends_while_it_is_used(
    tokens: Tokens, provider: Provider, clock: TwoClocks
) -> None:
    token = provider.token(exp=int(clock.now().timestamp()) + 10)
    assert tokens.bearer(token, CLIENT) is not None
    clock.sleep(10 + LEEWAY_SECONDS)
    assert tokens.bearer(token, CLIENT) is None


def claims(provider: Provider) -> dict[str, Any]:
    return {"iss": provider.issuer, "aud": CLIENT, "sub": "s-carol", "exp": NOW + 3600, "iat": NOW}


def test_only_the_provider_signs(tokens: Tokens, provider: Provider) -> None:
    """None, a shared secret made of the public key, another key, a key in the token, another
    algorithm.
    """
    said, public = claims(provider), rsa(1)
    assert tokens.bearer(signed({"alg": "RS256", "kid": "k1"}, said, public), CLIENT) is not None
    own: RSAKey = RSAKey.generate_key(2048)
    forged = [
        unsigned({"alg": "none", "typ": "JWT"}, said),
        unsigned({"alg": "none", "typ": "JWT", "kid": "k1"}, said, b"x"),
        unsigned({"alg": "RS256", "kid": "k1", "typ": "JWT"}, said),
        unsigned({"alg": "nonE", "kid": "k1"}, said),
        shared({"alg": "HS256", "kid": "k1"}, said, public.as_pem(private=False)),
        shared({"alg": "HS256", "kid": "k1"}, said, public.as_der(private=False)),
        signed({"alg": "RS256", "kid": "k1"}, said, own),
        signed({"alg": "RS256", "kid": "k1", "jwk": own.as_dict(private=False)}, said, own),
        signed({"alg": "RS256", "kid": "k1", "jku": "http://127.0.0.1:1/"}, said, own),
        signed({"alg": "PS256", "kid": "k1"}, said, public_without_algorithm()),
        signed({"alg": "RS256", "kid": "k9"}, said, public),
        signed({"alg": "RS256", "kid": "k1", "typ": "logout+jwt"}, said, public),
    ]
    for token in forged:
        assert tokens.bearer(token, CLIENT) is None
    for part in (0, 1, 2):
        pieces = provider.token().split(".")
        pieces[part] = pieces[part][:-8] + "AAAAAAAA"
        assert tokens.bearer(".".join(pieces), CLIENT) is None


def shared(header: dict[str, Any], said: dict[str, Any], secret: bytes) -> str:
    """A token under a secret that everybody can read."""
    text = unsigned(header, said).rpartition(".")[0]
    mac = hmac.digest(secret, text.encode(), "sha256")
    return f"{text}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def public_without_algorithm() -> RSAKey:
    document = rsa(1).as_dict(private=True)
    document.pop("alg")
    key: RSAKey = RSAKey.import_key(document)
    return key


def test_an_algorithm_that_the_settings_do_not_name_is_refused(
    provider: Provider, clock: TwoClocks
) -> None:
    issuer = Issuer(provider.issuer, Fetcher(), clock)
    try:
        assert Tokens(issuer, clock, ("ES256",)).bearer(provider.token(), CLIENT) is None
        assert provider.asked == []
    finally:
        issuer.close()


@pytest.mark.parametrize(
    "token",
    [
        "",
        "rk_0_x",
        "a.b.c",
        "..",
        "e30.e30.e30",
        "é.é.é",
        "x" * 10,
        "a.b",
        "A" * LONGEST_TOKEN + "..",
    ],
)
def test_what_is_no_token_asks_nobody(tokens: Tokens, provider: Provider, token: str) -> None:
    assert tokens.bearer(token, CLIENT) is None
    assert provider.asked == []


def test_a_longer_token_than_servers_take_is_refused(tokens: Tokens, provider: Provider) -> None:
    assert tokens.bearer(provider.token(more="x" * LONGEST_TOKEN), CLIENT) is None


def test_a_sign_in_needs_its_own_nonce(tokens: Tokens, provider: Provider) -> None:
    def valid(expected: str, access: str | None = None, **said: Any) -> bool:
        return tokens.signed_in(provider.token(**said), CLIENT, expected, access) is not None

    assert valid("n1", nonce="n1")
    assert not valid("n1", nonce="n2")
    assert not valid("n1")
    assert not valid("n1", nonce="n1", aud="another")
    assert not valid("n1", nonce="n1", azp="another")
    assert not valid("n1", nonce="n1", aud=[CLIENT, "another"])  # whose it is is not said
    assert valid("n1", nonce="n1", aud=[CLIENT, "another"], azp=CLIENT)
    assert not valid("n1", access="opaque", nonce="n1", at_hash="AAAA")
    assert not valid("n1", nonce="n1", amr="mfa")


def test_keys_are_kept_and_fetched_again(
    tokens: Tokens, provider: Provider, clock: TwoClocks
) -> None:
    """A new key is found, a withdrawn one is gone after FRESH_SECONDS, and forged ids ask
    seldom.
    """

    def is_valid(key: int) -> bool:
        provider.key = key
        return tokens.bearer(provider.token(), CLIENT) is not None

    assert is_valid(1)
    for _ in range(20):
        assert not is_valid(2)
    assert provider.asked.count(PATH) == 1
    provider.keys = [1, 2]
    clock.passed += RETRY_SECONDS + 1
    assert is_valid(2)
    assert provider.asked.count(PATH) == 2
    provider.keys = [2]
    assert is_valid(1)
    clock.passed += FRESH_SECONDS + 1
    assert not is_valid(1)
    assert is_valid(2)


def test_a_provider_that_is_away_is_no_reason_to_believe(
    tokens: Tokens, provider: Provider, clock: TwoClocks
) -> None:
    provider.down = True
    for _ in range(5):
        with pytest.raises(Unavailable):
            tokens.bearer(provider.token(), CLIENT)
    assert len(provider.asked) == 1
    provider.down, clock.passed = False, RETRY_SECONDS + 1
    assert tokens.bearer(provider.token(), CLIENT) is not None
    provider.down = True
    clock.passed += FRESH_SECONDS + 1
    assert tokens.bearer(provider.token(), CLIENT) is not None
    clock.passed += STALE_SECONDS
    with pytest.raises(Unavailable):
        tokens.bearer(provider.token(), CLIENT)


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://another.example"},
        {"issuer": None},
        {"jwks_uri": "http://another.example/keys"},
        {"jwks_uri": "file:///etc/passwd"},
        {"token_endpoint": None},
        {"authorization_endpoint": "javascript:alert(1)"},
    ],
)
def test_a_provider_that_says_something_else_of_itself_is_not_asked_more(
    tokens: Tokens, provider: Provider, metadata: dict[str, Any]
) -> None:
    provider.metadata = metadata
    with pytest.raises(Unavailable):
        tokens.bearer(provider.token(), CLIENT)
    assert provider.asked == ["/.well-known/openid-configuration"]


@pytest.mark.parametrize(
    ("url", "issuer"),
    [
        ("http://id.example/keys", "https://id.example"),
        ("http://127.0.0.1/keys", "https://id.example"),
        ("http://id.example/keys", "http://127.0.0.1:9000"),
        ("ftp://127.0.0.1/keys", "http://127.0.0.1:9000"),
        ("https://", "https://id.example"),
        ("https://id.example/\nkeys", "https://id.example"),
        (None, "https://id.example"),
    ],
)
def test_an_endpoint_that_others_could_read_or_change_is_not_asked(
    url: object, issuer: str
) -> None:
    assert safe_url("https://keys.example/a", issuer) == "https://keys.example/a"
    with pytest.raises(Unavailable):
        safe_url(url, issuer)


def test_keys_that_cannot_verify_are_left_out(
    provider: Provider, clock: TwoClocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shared secret in the set, a key for encryption, one that is too short, and rubbish."""
    with warnings.catch_warnings(action="ignore"):
        short: RSAKey = RSAKey.generate_key(1024)
    good = rsa(1).as_dict(private=False)
    published: list[Any] = [
        {"kty": "oct", "kid": "k2", "k": "AAAA"},
        good | {"kid": "k3", "use": "enc"},
        short.as_dict(private=False) | {"kid": "k4"},
        {"kty": "RSA", "kid": "k5"},
        {"kty": "new", "kid": "k6"},
        7,
        good,
    ]
    monkeypatch.setattr(
        Fetcher,
        "get",
        lambda _self, url: {"keys": published} if url.endswith(PATH) else provider._discovery(),
    )
    issuer = Issuer(provider.issuer, Fetcher(), clock)
    with warnings.catch_warnings(action="ignore"):
        assert issuer.key("k1", "RS256") is not None
    for number in range(2, 8):
        assert issuer.key(f"k{number}", "RS256") is None
    published[:] = [good, good]
    clock.passed += FRESH_SECONDS + 1
    assert issuer.key("k1", "RS256") is None  # which of two is not known
