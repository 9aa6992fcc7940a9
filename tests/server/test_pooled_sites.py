# SPDX-License-Identifier: Apache-2.0
"""A pooled study of two installations over HTTP: each charged by its own ledger, or none at all."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import reticent
from reticent.__main__ import main
from reticent._http import LARGEST
from reticent_server.access.secret_places import place_of
from reticent_server.certificate.signing import PROTOCOL, sign
from reticent_server.domain.protocol import Agreed
from support.installations.small import Installation, copied, opened, serving

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
        installations: dict[str, Installation] = {}
        urls: dict[str, str] = {}
        for name in ("north", "south"):
            folder = tmp_path_factory.mktemp("pooled") / name
            own = stack.enter_context(copied(installation_template, folder))
            server = stack.enter_context(serving(own))
            client = stack.enter_context(reticent.Client(server.url, key=own.keys["ana"]))
            clients.append(client)
            installations[name], urls[name] = own, server.url
            found[name] = client.dataset("people")
            poor_key = own.analyst("poor", epsilon=1.0, delta=1e-3)
            poor = stack.enter_context(reticent.Client(server.url, key=poor_key))
        yield Sites(found, clients, poor.dataset("people"), installations, urls)


@dataclass(frozen=True)
class Sites:
    """datasets: by site. clients: in the same order. poor: the last site's, for whoever may spend
    little there. installations, urls: by site.
    """

    datasets: dict[str, Any]
    clients: list[Any]
    poor: Any
    installations: dict[str, Installation]
    urls: dict[str, str]

    @property
    def left(self) -> list[str]:
        """What every account has left, as a text."""
        return [str(client.budget()) for client in self.clients]


@pytest.mark.slow
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


def signed(sites: Sites, content: dict[str, Any], *names: str) -> dict[str, Any]:
    """The protocol as the curators of some sites have signed it, each at its own server."""
    terms = Agreed.from_text(json.dumps(content))
    signatures = []
    for name in names:
        with opened(sites.installations[name].settings) as services:
            header, _, end = sign(place_of(services.settings), terms.canonical, PROTOCOL).split(".")
            services.protocols.accept(terms, "people", name, f"{header}..{end}", by="t")
        signatures.append({"site": name, "jws": f"{header}..{end}"})
    return content | {"signatures": signatures}


def test_servers_hold_a_signed_protocol_and_refuse_what_differs(sites: Sites) -> None:
    agreed = signed(sites, AGREED | {"epsilon": 17.0}, "north", "south")
    found = reticent.pooled(agreed, sites.datasets)
    assert reticent.protocol(agreed).signed == ("north", "south")
    paid = sites.left
    assert reticent.pooled(agreed, sites.datasets)["north"].id == found["north"].id
    held = sites.clients[0].dataset("people", protocol=reticent.protocol(agreed).digest)
    with pytest.raises(reticent.InvalidQuery, match=r"another question.*Nothing was charged"):
        held.count(epsilon=0.1)
    with pytest.raises(reticent.InvalidQuery, match=r"another question.*Nothing was charged"):
        held.study(["y", "x"], epsilon=17.0)
    assert sites.left == paid


def test_a_site_that_has_withdrawn_stops_all_before_any_charge(sites: Sites) -> None:
    agreed = signed(sites, AGREED | {"epsilon": 16.0}, "north", "south")
    with opened(sites.installations["south"].settings) as services:
        services.protocols.withdraw(reticent.protocol(agreed).digest, "people", by="t")
    before = sites.left
    with pytest.raises(reticent.PolicyRefused, match="withdrawn"):
        reticent.pooled(agreed, sites.datasets)
    assert sites.left == before


def test_the_command_line_asks_several_servers_with_a_key_each(
    sites: Sites,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "protocol.json").write_text(json.dumps(AGREED | {"epsilon": 14.0}))
    words = ["pooled", str(tmp_path / "protocol.json"), str(tmp_path / "pool.json"), "--resume"]
    for name, url in sites.urls.items():
        monkeypatch.setenv(f"RETICENT_KEY_{name.upper()}", sites.installations[name].keys["ana"])
        words += ["--site", f"{name}={url}/people"]
    assert main([*words, "--ols", "y ~ x + site"]) == 0
    assert "site[south]" in capsys.readouterr().out
    assert reticent.load_pooled(tmp_path / "pool.json").nobs == 800
    assert main([*words[:3], "--site", "north"]) == 1
    assert "NAME=URL/DATASET" in capsys.readouterr().err


class Hostile(httpx.BaseTransport):
    """The wire to a site that keeps what it is sent, and changes its releases before it sends
    them. change: of a release's document, or a text in its place.
    """

    def __init__(self, change: Callable[[dict[str, Any]], object] = lambda _: None) -> None:
        self._honest = httpx.HTTPTransport()
        self._change = change
        self.seen: list[bytes] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(f"{request.method} {request.url.path}\n".encode() + request.read())
        reply = self._honest.handle_request(request)
        body = reply.read()
        if request.url.path == "/v1/releases":
            document = json.loads(body)
            changed = self._change(document)
            body = changed if isinstance(changed, bytes) else json.dumps(document).encode()
        reply.close()
        return httpx.Response(reply.status_code, content=body)

    def close(self) -> None:
        self._honest.close()


def asked_of_both(sites: Sites, wire: Hostile) -> Any:
    """The pool in which the south is hostile; what its server stored is asked again, for free."""
    own = sites.installations["south"]
    url, key = sites.urls["south"], own.keys["ana"]
    with reticent.Client(url, key=key, transport=wire, retries=0) as client:
        datasets = {"north": sites.datasets["north"], "south": client.dataset("people")}
        return reticent.pooled(AGREED | {"epsilon": 18.0}, datasets, resume=True)


def other_variables(d: dict[str, Any]) -> None:
    d["query"]["variables"] = ["y", "k"]


def a_condition(d: dict[str, Any]) -> None:
    d["query"]["where"] = "b == 1"
    d["query"]["by"] = "g"


def other_columns(d: dict[str, Any]) -> None:
    d["result"]["terms"][1:3] = ["x", "y"]


def more_spent(d: dict[str, Any]) -> None:
    d["charged"]["epsilon"] = 31.0


def more_people(d: dict[str, Any]) -> None:
    d["result"]["n"] = 10**9


def not_a_number(d: dict[str, Any]) -> None:
    d["result"]["moments"][1][2] = d["result"]["moments"][2][1] = float("nan")


def unlimited(d: dict[str, Any]) -> None:
    d["result"]["noise"]["sd"] = float("inf")


def no_noise(d: dict[str, Any]) -> None:
    d["result"]["noise"]["sd"] = -1.0


def another_shape(d: dict[str, Any]) -> None:
    d["result"]["moments"] = [row[:-1] for row in d["result"]["moments"]][:-1]


def short_vector(d: dict[str, Any]) -> None:
    d["result"]["lost"] = d["result"]["lost"][:-1]


def asymmetric(d: dict[str, Any]) -> None:
    d["result"]["moments"][1][2] += 50.0


def another_kind(d: dict[str, Any]) -> None:
    d["query"] = {"kind": "count"}
    d["result"] = {"value": 1.0, "n": 400, "standard_error": 1.0}


def huge(_: dict[str, Any]) -> bytes:
    return b" " * (LARGEST + 1)


def deep(_: dict[str, Any]) -> bytes:
    return b"[" * 200_000


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (other_variables, "is the answer to another question"),
        (a_condition, "south: it answered another question, in by, where"),
        (other_columns, "north and south answered one question with other columns"),
        (more_spent, "south: it charged another epsilon"),
        (more_people, "south: it answered about another number of records"),
        (not_a_number, "south: its answer has numbers that are not finite"),
        (unlimited, "south: its answer has numbers that are not finite"),
        (no_noise, "south: its answer has a scale, a noise or a number of records"),
        (another_shape, "lacks what this version of the client expects"),
        (short_vector, "south: its answer has moments of another shape"),
        (asymmetric, "south: its moments are not symmetric"),
        (another_kind, "is the answer to another question"),
        (huge, "sends more than 64 MiB"),
        (deep, "not JSON"),
    ],
)
def test_what_a_hostile_site_answers_is_refused_with_a_sentence(
    sites: Sites, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    with pytest.raises(reticent.UnexpectedReply, match=said):
        asked_of_both(sites, Hostile(change))


def larger(answer: dict[str, Any]) -> float:
    """A first moment that a table could have."""
    return 1.001 * float(answer["result"]["moments"][0][0])


def test_a_hostile_site_is_sent_the_same_whatever_the_other_answers(sites: Sites) -> None:
    """Byte for byte, and neither another site's name, address and key, nor any number of it."""
    first, second = Hostile(), Hostile()
    found = asked_of_both(sites, first)
    other = Hostile(lambda d: d["result"]["moments"][0].__setitem__(0, larger(d)))
    own = sites.installations["north"]
    with reticent.Client(sites.urls["north"], key=own.keys["ana"], transport=other) as client:
        changed = dataclasses.replace(
            sites, datasets=sites.datasets | {"north": client.dataset("people")}
        )
        assert asked_of_both(changed, second)["north"].result != found["north"].result
    assert first.seen == second.seen
    sent = b"".join(first.seen).decode()
    port = sites.urls["north"].rpartition(":")[2]
    assert not any(word in sent for word in ("north", port, own.keys["ana"], found["north"].id))
