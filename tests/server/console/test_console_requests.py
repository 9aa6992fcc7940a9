# SPDX-License-Identifier: Apache-2.0
"""The console by bare requests: what no browser would send, and what every reply must carry."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import httpx
import pytest

from reticent_server.access.projects import Charter
from reticent_server.domain import patience
from reticent_server.domain.protocol import Agreed
from reticent_server.errors import NotFound
from reticent_server.ledger.model import analyst_account, population_account
from reticent_server.pipeline.planner import Planner
from reticent_server.pipeline.simulator import simulate
from reticent_server.web.sessions import IDLE_SECONDS
from support.installations.console import HOSTILE, Desk

PATIENCE = 60.0
"""Seconds that a caller waits: a machine that is busy with other things is no failure."""

PAGES = [
    "/console",
    "/console/",
    "/console/datasets/people",
    "/console/datasets/people/simulator",
    "/console/analysts",
    "/console/analysts/ana",
    "/console/analysts/ana/revoke",
    "/console/projects",
    "/console/proposals",
    "/console/budgets",
    "/console/budgets?account=population:people",
    "/console/ledger",
    "/console/ledger?q=ana&before=12",
    "/console/ledger/verify",
]
FORMS: dict[str, dict[str, str]] = {
    "/console/analysts": {"name": "dan"},
    "/console/analysts/ana/rotate": {"newest_key": ""},
    "/console/analysts/ana/revoke": {"typed": "ana"},
    "/console/budgets/set": {"dataset": "people", "epsilon": "50", "delta": "0.01"},
    "/console/budgets/credit": {
        "account": "population:people",
        "primary": "1",
        "reason": "never sent",
    },
    "/console/projects/trial/close": {"sure": "yes"},
    "/console/sign-out": {"now": "yes"},
}


@pytest.fixture
def web(desk: Desk) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=desk.url, timeout=PATIENCE) as client:
        yield client


def token(reply: httpx.Response) -> str:
    found = re.search(r'name="form_token" value="([0-9a-f]{96})"', reply.text)
    assert found
    return found[1]


def sign_in(web: httpx.Client, key: str, **fields: str) -> httpx.Response:
    given = {"form_token": token(web.get("/console/sign-in")), "key": key}
    return web.post("/console/sign-in", data=given | fields)


@pytest.fixture
def inside(web: httpx.Client, desk: Desk) -> httpx.Client:
    assert sign_in(web, desk.key).status_code == 303
    return web


def post(web: httpx.Client, path: str, **fields: str) -> httpx.Response:
    return web.post(path, data={"form_token": token(web.get("/console/"))} | fields)


def test_a_page_is_for_curators_who_have_signed_in(web: httpx.Client) -> None:
    for path in [*PAGES, "/console/releases/rel_1"]:
        reply = web.get(path)
        assert (reply.status_code, reply.text) == (303, "")
        assert reply.headers["location"].startswith("/console/sign-in?next=/console")
        part = web.get(path, headers={"HX-Request": "true"})
        place = part.headers["hx-redirect"]
        assert (part.status_code, place) == (204, "/console/sign-in?next=/console/")


@pytest.mark.slow
def test_every_page_renders_under_the_strict_policy(inside: httpx.Client) -> None:
    for path in PAGES:
        reply = inside.get(path)
        assert reply.status_code == 200
        (policy,) = reply.headers.get_list("content-security-policy")
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert reply.headers["cache-control"] == "no-store"
        assert reply.headers["x-content-type-options"] == "nosniff"
        text = reply.text.replace("onerror", "")  # of the hostile reason, escaped
        assert not re.search(r"<script(?! src=)| style=| on[a-z]+=", text)


def test_only_a_curator_s_key_opens(desk: Desk, web: httpx.Client) -> None:
    analyst = desk.services.access.add_analyst("dan", by="t")[1]
    for key in ("", analyst, desk.key[:-1], "rk_" + "0" * 16 + "_" + "A" * 43, "é" * 70):
        reply = sign_in(web, key)
        assert reply.status_code == 401
        assert "not a key for the console" in reply.text
        assert key == "" or key not in reply.text
        assert web.get("/console/").status_code == 303
    assert sign_in(web, f" {desk.key} ").status_code == 303
    assert web.get("/console/").status_code == 200


def test_the_cookie(desk: Desk, web: httpx.Client) -> None:
    before = web.get("/console/sign-in").cookies["reticent"]
    reply = sign_in(web, desk.key)
    cookie = reply.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert desk.key not in cookie
    assert reply.cookies["reticent"].split(".")[0] != before.split(".")[0]
    # Anywhere but on the server itself a cookie travels over TLS only, and no other host can set
    # it.
    elsewhere = web.get("/console/sign-in", headers={"Host": "stats.example.org"})
    named = elsewhere.headers["set-cookie"]
    assert named.startswith("__Host-reticent=")
    assert "Secure" in named.split("; ")
    assert "Do not type a key here" in elsewhere.text
    # Browsers send this header over TLS only: a proxy in front has ended it.
    behind = {"Host": "stats.example.org", "Sec-Fetch-Site": "none"}
    assert "Do not type a key here" not in web.get("/console/sign-in", headers=behind).text


def test_signing_in_leads_nowhere_else(desk: Desk, web: httpx.Client) -> None:
    outside = ("//evil.test/console/", "https://evil.test/", "/v1/datasets", "/console/\r\nX: y")
    for wanted, place in [("/console/ledger",) * 2, *((path, "/console/") for path in outside)]:
        web.cookies.clear()
        reply = sign_in(web, desk.key, next=wanted)
        assert (reply.status_code, reply.headers["location"]) == (303, place)


@pytest.mark.sample(6)
@pytest.mark.parametrize("path", FORMS)
def test_a_form_needs_the_token_of_its_session(desk: Desk, path: str) -> None:
    with (
        httpx.Client(base_url=desk.url, timeout=PATIENCE) as other,
        httpx.Client(base_url=desk.url, timeout=PATIENCE) as web,
    ):
        sign_in(other, desk.key)
        sign_in(web, desk.key)
        theirs = token(other.get("/console/"))
        head = desk.services.ledger.head()
        names = [(a.name, a.newest_key, a.revoked) for a in desk.services.access.analysts()]
        ours = {"form_token": token(web.get("/console/"))}
        refused: list[dict[str, Any]] = [
            {"data": FORMS[path]},
            {"data": FORMS[path] | {"form_token": theirs}},
            {"data": FORMS[path] | ours, "headers": {"Origin": "https://evil.test"}},
            {"data": FORMS[path] | ours, "headers": {"Origin": "null"}},
            {"data": FORMS[path] | ours, "headers": {"Sec-Fetch-Site": "cross-site"}},
            {"data": FORMS[path] | ours, "headers": {"Sec-Fetch-Site": "same-site"}},
        ]
        for request in refused:
            assert web.post(path, **request).status_code == 403
        assert web.post(path, json=FORMS[path] | ours).status_code == 422
        assert desk.services.ledger.head() == head
        assert names == [(a.name, a.newest_key, a.revoked) for a in desk.services.access.analysts()]
        assert web.get("/console/").status_code == 200


def test_signing_in_needs_a_token_too(desk: Desk, web: httpx.Client) -> None:
    reply = web.post("/console/sign-in", data={"key": desk.key})
    assert (reply.status_code, "open for too long" in reply.text) == (403, True)
    reply = web.post("/console/sign-in", data={"key": desk.key, "form_token": "0" * 96})
    assert reply.status_code == 403
    assert web.get("/console/").status_code == 303


@pytest.mark.slow
def test_the_forms_do_what_they_say(desk: Desk, inside: httpx.Client) -> None:
    """The same requests, with the token: so the refusals above are for nothing else."""
    services = desk.services
    ana = services.access.analyst("ana")
    asked = services.requests.make(ana.id, {"name": "trial"})
    charter = Charter("trial", "To see", ("bob",), ("people",), None)
    services.projects.approve(asked.id, charter, "", by="t", budgets=lambda *_: None)
    for path, fields in FORMS.items():
        given = fields | ({"newest_key": ana.newest_key or ""} if "rotate" in path else {})
        assert post(inside, path, **given).status_code in {201, 303}, path
    assert services.access.analyst("dan").live_keys == 1
    assert services.access.analyst("ana").revoked
    assert not services.projects.named("trial").is_live
    credit, cap = services.ledger.entries(population_account("people"), 2)
    assert (cap.draft.action, cap.draft.actor) == ("cap", "console:carol")
    assert (credit.draft.action, credit.draft.detail) == ("credit", {"reason": "never sent"})
    assert inside.get("/console/").status_code == 303  # signed out


@pytest.mark.slow
def test_a_release_is_published_where_that_was_confirmed(desk: Desk, inside: httpx.Client) -> None:
    ana = desk.services.access.analyst("ana")
    body = desk.services.ledger.releases(ana.id, 1, 0)[0]
    assert isinstance(body, bytes)
    place = f"/console/releases/{json.loads(body)['id']}"
    assert "Publish it for ever" in inside.get(place).text
    assert post(inside, f"{place}/publish").status_code == 422
    assert desk.services.catalog.published("people") == []
    assert post(inside, f"{place}/publish", sure="yes").status_code == 303
    assert "It is published" in inside.get(place).text
    last = desk.services.ledger.search(["release.publish"], before=None, limit=1)[0]
    assert last.draft.actor == "console:carol"


def test_a_session_ends_by_itself_and_with_its_key(desk: Desk, inside: httpx.Client) -> None:
    desk.clock.sleep(IDLE_SECONDS)
    assert inside.get("/console/").status_code == 200  # and is seen now
    desk.clock.sleep(IDLE_SECONDS)
    assert inside.get("/console/").status_code == 200
    desk.services.access.rotate("carol", drop_old=True, by="t")
    assert "ended=1" in inside.get("/console/").headers["location"]


def test_a_curator_who_is_revoked_is_out_at_once(desk: Desk, inside: httpx.Client) -> None:
    form = {"form_token": token(inside.get("/console/")), "name": "dan"}
    desk.services.access.revoke("carol", by="t")
    assert inside.post("/console/analysts", data=form).status_code == 303
    assert [a.name for a in desk.services.access.analysts()] == ["ana", "bob", "eve"]


def test_a_rotation_that_is_sent_twice_ends_no_key_that_is_in_use(
    desk: Desk, inside: httpx.Client
) -> None:
    form = {"newest_key": desk.services.access.analyst("ana").newest_key or ""}
    first = post(inside, "/console/analysts/ana/rotate", **form)
    again = post(inside, "/console/analysts/ana/rotate", **form)
    assert (first.status_code, again.status_code) == (201, 409)
    assert desk.services.access.analyst("ana").live_keys == 2


def test_a_credit_that_is_sent_twice_is_written_once(desk: Desk, inside: httpx.Client) -> None:
    account = analyst_account(desk.services.access.analyst("ana").id, "people")
    form = {"account": account, "primary": "0.001", "reason": "lost"}
    replies = [post(inside, "/console/budgets/credit", **form).status_code for _ in range(2)]
    assert replies == [303, 409]
    assert post(inside, "/console/budgets/credit", **(form | {"reason": "2nd"})).status_code == 303


def test_a_form_is_taken_once_of_many_at_once(desk: Desk, inside: httpx.Client) -> None:
    """Twelve of the same credit in parallel; and the same page's form again, later."""
    form = {"account": "population:people", "primary": "0.5", "reason": "lost"}
    form |= {"form_token": token(inside.get("/console/budgets"))}
    gate, cookies = Barrier(12), dict(inside.cookies)

    def send(_: int) -> int:
        with httpx.Client(base_url=desk.url, timeout=PATIENCE, cookies=cookies) as web:
            gate.wait()
            return web.post("/console/budgets/credit", data=form).status_code

    with ThreadPoolExecutor(12) as pool:
        statuses = sorted(pool.map(send, range(12)))
    assert statuses == [303] + [409] * 11
    again = inside.post("/console/budgets/credit", data=form)
    assert (again.status_code, "was sent before" in again.text) == (409, True)
    last = desk.services.ledger.entries("population:people", 2)
    assert [e.draft.detail.get("reason") for e in last].count("lost") == 1


def test_no_form_is_taken_twice(desk: Desk, inside: httpx.Client) -> None:
    for path in ("/console/analysts", "/console/budgets/set"):
        form = FORMS[path] | {"form_token": token(inside.get("/console/"))}
        assert inside.post(path, data=form).status_code in {201, 303}
        head = desk.services.ledger.head()
        assert inside.post(path, data=form).status_code == 409
        assert desk.services.ledger.head() == head


def test_a_copied_cookie_ends_with_the_session(desk: Desk, inside: httpx.Client) -> None:
    with httpx.Client(base_url=desk.url, timeout=PATIENCE, cookies=dict(inside.cookies)) as thief:
        assert thief.get("/console/").status_code == 200
        form = {"form_token": token(thief.get("/console/")), "name": "dan"}
        assert post(inside, "/console/sign-out").status_code == 303
        assert thief.get("/console/").status_code == 303
        assert thief.post("/console/analysts", data=form).status_code == 303
    assert "dan" not in [a.name for a in desk.services.access.analysts()]
    ended, begun = desk.services.ledger.entries(limit=2)
    assert (begun.draft.action, ended.draft.action) == ("session.begin", "session.end")
    assert {begun.draft.actor, ended.draft.actor} == {"console:carol"}
    assert desk.services.ledger.verify() == []


def test_every_session_of_a_curator_can_be_ended(desk: Desk, inside: httpx.Client) -> None:
    with httpx.Client(base_url=desk.url, timeout=PATIENCE) as other:
        sign_in(other, desk.key)
        assert desk.services.sign_ins.end_all("carol", by="cli:root") == 2
        for web in (inside, other):
            assert "ended=1" in web.get("/console/").headers["location"]
    assert desk.services.sign_ins.end_all("carol", by="cli:root") == 0
    with pytest.raises(NotFound):
        desk.services.sign_ins.end_all("nobody", by="cli:root")


@pytest.mark.slow
def test_signing_in_is_limited_for_each_key_and_for_all_that_are_none(
    desk: Desk, web: httpx.Client
) -> None:
    """Who knows no key keeps nobody else out; who knows a key's id, the holder of that key, for a
    minute."""
    limit = desk.services.settings.sign_ins_per_minute
    unknown = "rk_" + "0" * 16 + "_" + "A" * 43
    statuses = [sign_in(web, wrong).status_code for wrong in ("", unknown, "é") * limit]
    assert statuses == [401] * limit + [429] * (2 * limit)
    assert sign_in(web, desk.key).status_code == 303
    wrong = desk.key[:-1] + ("A" if desk.key[-1] != "A" else "B")
    with httpx.Client(base_url=desk.url, timeout=PATIENCE) as guesser:
        statuses = [sign_in(guesser, wrong).status_code for _ in range(limit)]
        assert statuses == [401] * (limit - 1) + [429]
        refused = sign_in(guesser, desk.key)
        assert (refused.status_code, "too many attempts" in refused.text) == (429, True)
        desk.clock.sleep(61)
        assert sign_in(guesser, desk.key).status_code == 303


REFUSED: list[tuple[str, dict[str, str], int]] = [
    ("set", {"epsilon": "1"}, 409),  # below what is spent
    ("set", {"epsilon": "nan"}, 422),
    ("set", {"epsilon": "-1"}, 422),
    ("set", {"epsilon": "٣"}, 422),
    ("set", {"epsilon": ""}, 422),
    ("set", {"rule": "free"}, 422),
    ("set", {"rule": "zcdp"}, 409),
    ("set", {"query_delta": "1e-8"}, 422),  # of an account under the rule basic
    ("set", {"query_delta": "a tenth"}, 422),
    ("set", {"dataset": "nothing"}, 404),
    ("set", {"analyst": "nobody"}, 404),
    ("credit", {"reason": "  "}, 422),
    ("credit", {"primary": "1e6"}, 409),
    ("credit", {"primary": "0"}, 422),
    ("credit", {"account": "analyst:x"}, 404),
]


@pytest.mark.slow
def test_what_cannot_be_done_is_said_and_the_form_keeps_its_words(
    desk: Desk, inside: httpx.Client
) -> None:
    head = desk.services.ledger.head()
    for form, change, status in REFUSED:
        path = f"/console/budgets/{form}"
        reply = post(inside, path, **(FORMS[path] | change))
        assert (reply.status_code, "Not done" in reply.text) == (status, True), change
    assert desk.services.ledger.head() == head


def test_a_malformed_form_is_refused(inside: httpx.Client) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    for body in (b"name=a&name=b", b"\xff", b"name=%ff", b"&&&&", b"a=1&" * 40, b"novalue"):
        assert inside.post("/console/analysts", content=body, headers=headers).status_code == 422


def test_what_there_is_not_is_a_page(inside: httpx.Client) -> None:
    for name in (
        "nothing",
        "datasets/nothing",
        "datasets/%00",
        "analysts/nobody",
        "releases/rel_nobody",
        "releases/%00",
        "static/../application.py",
        "static/console.html",
    ):
        reply = inside.get(f"/console/{name}")
        assert reply.status_code == 404
        assert reply.headers["content-type"] == "text/html; charset=utf-8"
        assert "<h1>Not found</h1>" in reply.text


def test_an_unexpected_error_says_nothing(
    desk: Desk, inside: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("the cell is 4711")

    monkeypatch.setattr(desk.services.ledger, "verify", broken)
    reply = inside.get("/console/ledger/verify")
    assert (reply.status_code, "unexpected condition" in reply.text) == (500, True)
    assert "4711" not in reply.text


def test_the_files_are_served_as_they_are(web: httpx.Client) -> None:
    for name, kind in (
        ("pages.css", "text/css"),
        ("htmx.min.js", "text/javascript"),
        ("icon.svg", "image/svg+xml"),
    ):
        reply = web.get(f"/console/static/{name}")
        assert reply.headers["content-type"].startswith(kind)
        assert reply.headers["cache-control"] == "max-age=600"


def test_the_audit_trail_names_questions_and_is_exported(
    inside: httpx.Client,
) -> None:
    assert "mean: y" in inside.get("/console/ledger").text
    reply = inside.get("/console/ledger.csv?q=ana")
    lines = reply.text.splitlines()
    assert lines[0].endswith(",asked")
    assert any(line.endswith("mean: y") for line in lines)
    assert reply.headers["content-type"].startswith("text/csv")


def test_the_simulator_shows_plans_of_typical_questions_and_what_it_cannot_read(
    inside: httpx.Client,
) -> None:
    path = "/console/datasets/people/simulator"
    assert path in inside.get("/console/datasets/people").text
    usual = inside.get(path)
    assert "How does y change with x, others equal?" in usual.text
    assert "such questions" in usual.text
    more = inside.get(path, params={"cap": "80", "questions": "4", "epsilon": "20"})
    assert "4 such questions fit: a cap of ε 80 has room for 4." in more.text
    for wrong in ({"cap": "much"}, {"questions": "0"}, {"questions": "-3"}, {"cap": "0"}):
        reply = inside.get(path, params=wrong)
        assert reply.status_code == 422
        assert 'class="problem"' in reply.text


def test_what_is_planned_for_a_page_takes_its_turn(
    inside: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[Any] = []
    run = Planner.run

    def noted(planner: Planner, function: Any, *arguments: Any) -> Any:
        assert patience._CURRENT.get() is not None
        planned.append(function)
        return run(planner, function, *arguments)

    monkeypatch.setattr(Planner, "run", noted)
    assert inside.get("/console/projects").status_code == 200
    assert planned == []
    assert inside.get("/console/datasets/people/simulator").status_code == 200
    assert planned == [simulate]


def test_protocols_are_shown_at_the_data_set_that_they_are_about(
    inside: httpx.Client, desk: Desk
) -> None:
    path = "/console/datasets/people"
    assert "Protocols of pooled studies" not in inside.get(path).text
    agreed = Agreed(
        {
            "protocol": 1,
            "title": HOSTILE[:80],
            "study": {"variables": ["y", "x", "C(g)"]},
            "epsilon": 2,
            "columns": {},
            "sites": {"north": {}, "south": {"epsilon": 0.25, "without": ["x"]}},
        }
    )
    desk.services.protocols.accept(agreed, "another", "north", "s..s", by="cli:carol")
    assert "Protocols of pooled studies" not in inside.get(path).text
    desk.services.protocols.accept(agreed, "people", "south", "s..s", by="cli:carol")
    page = inside.get(path).text
    assert "<script>document" not in page
    for text in ("&lt;script", agreed.digest, "y, C(g)", ">0.25<", "by cli:carol", ">holds<"):
        assert text in page
    desk.services.protocols.withdraw(agreed.digest, "people", by="cli:carol")
    assert ">withdrawn <time" in inside.get(path).text


def test_a_burn_down_says_when_the_cap_was_what(inside: httpx.Client, desk: Desk) -> None:
    desk.services.ledger.set_population_cap("people", epsilon=60, delta=0.01, by="t")
    page = inside.get("/console/budgets?account=population:people").text
    assert re.search(r"The cap: .*ε 40 from [-0-9: ]+; ε 60 from [-0-9: ]+\.", page)


def test_the_trail_shows_a_part(desk: Desk, inside: httpx.Client) -> None:
    """Each release once, with what was asked; budgets; acts; and all of them for a part that there
    is not.
    """

    def actions(show: str, text: str = "") -> list[str]:
        page = inside.get("/console/ledger", params={"show": show, "q": text}).text
        return re.findall(r'<span class="tag ([a-z_.]+)"', page)

    ana = desk.services.access.analyst("ana")
    asked = len(desk.services.ledger.releases(ana.id, 9, 0))
    assert actions("releases") == ["debit"] * (asked + 1)  # and the profile
    rows = inside.get("/console/ledger", params={"show": "releases"}).text
    assert rows.count("mean: y") == 1
    assert set(actions("budgets")) == {"open", "cap", "credit"}
    acts = actions("acts")
    assert "dataset.load" in acts
    assert not {"debit", "credit", "settle"} & set(acts)
    assert actions("releases", "people") == actions("releases")
    assert actions("releases", "nobody") == []
    assert len(actions("evil")) == len(actions("")) > len(acts)
    csv = inside.get("/console/ledger.csv", params={"show": "releases"})
    assert csv.status_code == 200
    assert len(csv.text.splitlines()) == 1 + asked + 1


def test_a_proxy_that_hands_on_no_host_is_named(desk: Desk, web: httpx.Client) -> None:
    """The browser says that it sends the form to where it has it from, and that is another host."""
    page = web.get("/console/sign-in").text
    form = {"form_token": re.search(r'name="form_token" value="([0-9a-f]{96})"', page)[1]}  # type: ignore[index]
    sent = {"Origin": "https://stats.example.org", "Sec-Fetch-Site": "same-origin"}
    reply = web.post("/console/sign-in", data=form | {"key": desk.key}, headers=sent)
    assert reply.status_code == 403
    own = desk.url.removeprefix("http://")
    assert f"to stats.example.org, and the request that arrived here is for {own}." in reply.text
    assert "proxy_set_header Host" in reply.text
    sent["Sec-Fetch-Site"] = "cross-site"
    reply = web.post("/console/sign-in", data=form | {"key": desk.key}, headers=sent)
    assert (reply.status_code, "stats.example.org" in reply.text) == (403, False)
