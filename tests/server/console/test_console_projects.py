# SPDX-License-Identifier: Apache-2.0
"""Requests for projects in the console: what a page shows, and what its forms decide."""

import html
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from reticent_server.domain.roles import Role
from reticent_server.pipeline.accounts import account_json
from support.installations.console import HOSTILE, Desk

PATIENCE = 60.0
"""Seconds that a caller waits: a machine that is busy with other things is no failure."""

DOCUMENT: dict[str, Any] = {
    "name": "trial",
    "purpose": HOSTILE,
    "members": ["bob", HOSTILE],
    "ends_on": None,
    "budgets": [
        {"dataset": "people", "epsilon": 3.0, "delta": 1e-5},
        {"dataset": HOSTILE, "epsilon": 1.0, "delta": 1e-5},
    ],
    "plan": [
        {
            "dataset": "people",
            "query": {"kind": "count", "where": "x > 0"},
            "privacy": {"epsilon": 0.5},
        },
        {
            "dataset": "people",
            "query": {"kind": "mean", "column": HOSTILE},
            "privacy": {"epsilon": 0.5},
        },
    ],
}


@pytest.fixture
def web(desk: Desk) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=desk.url, timeout=PATIENCE) as client:
        sign_in(client, desk.key)
        yield client


def token(reply: httpx.Response) -> str:
    found = re.search(r'name="form_token" value="([0-9a-f]{96})"', reply.text)
    assert found
    return found[1]


def sign_in(web: httpx.Client, key: str) -> None:
    given = {"form_token": token(web.get("/console/sign-in")), "key": key}
    assert web.post("/console/sign-in", data=given).status_code == 303


def post(web: httpx.Client, path: str, **fields: str) -> httpx.Response:
    return web.post(path, data={"form_token": token(web.get("/console/"))} | fields)


@pytest.fixture
def request_id(desk: Desk) -> str:
    ana = desk.services.access.analyst("ana")
    return desk.services.requests.make(ana.id, DOCUMENT).id


@pytest.mark.slow
def test_a_request_is_shown_with_what_it_would_cost(web: httpx.Client, request_id: str) -> None:
    listed = web.get("/console/projects")
    assert f"/console/requests/{request_id}" in listed.text
    shown = web.get(f"/console/requests/{request_id}")
    assert shown.status_code == 200
    assert "together ε 0.5" in shown.text
    for page in (listed, shown):
        assert "<script>document" not in page.text
        assert "<img" not in page.text
    assert "&lt;script&gt;" in shown.text
    assert web.get("/console/requests/rq_absent").status_code == 404


@pytest.mark.slow
def test_it_is_changed_approved_and_closed(web: httpx.Client, desk: Desk, request_id: str) -> None:
    path = f"/console/requests/{request_id}/approve"
    given = {"name": "trial", "members": "ana bob", "ends_on": "", "reason": ""}
    amounts = {"epsilon_0": "1.5", "delta_0": "1e-5", "epsilon_1": "0", "delta_1": "0"}
    silent = post(web, path, **given, **amounts)
    assert (silent.status_code, "Say why" in silent.text) == (422, True)
    assert 'value="1.5"' in silent.text  # what was typed is there still
    odd = post(web, path, **given, **amounts | {"epsilon_0": "much"})
    assert (odd.status_code, "Epsilon is a number" in odd.text) == (422, True)
    assert desk.services.projects.all() == ()
    done = post(web, path, **given | {"reason": "Enough for the plan."}, **amounts)
    assert done.headers["location"] == "/console/projects?done=approved"
    (project,) = desk.services.projects.all()
    (balance,) = desk.services.ledger.balances(project.id)
    assert (balance.dataset, account_json(balance)["total"]["epsilon"]) == ("people", 1.5)
    assert [name for _, name in project.members] == ["ana", "bob"]
    assert project.purpose == HOSTILE
    again = post(web, path, **given | {"reason": "x", "name": "other"}, **amounts)
    assert (again.status_code, len(desk.services.projects.all())) == (409, 1)
    pages = [web.get(f"/console/{path}").text for path in ("projects", "budgets", "ledger")]
    assert all("trial" in page for page in pages)
    assert not any("<script>document" in page for page in pages)
    assert post(web, "/console/projects/trial/close").status_code == 422
    post(web, "/console/projects/trial/close", sure="yes")
    assert [p.is_live for p in desk.services.projects.all()] == [False]
    assert desk.services.ledger.verify() == []


@pytest.mark.slow
def test_a_member_and_a_data_set_are_taken_out(
    web: httpx.Client, desk: Desk, request_id: str
) -> None:
    given = {"name": "trial", "members": "ana bob", "ends_on": "", "reason": "As asked."}
    amounts = {"epsilon_0": "1.5", "delta_0": "1e-5", "epsilon_1": "0", "delta_1": "0"}
    assert post(web, f"/console/requests/{request_id}/approve", **given, **amounts).is_redirect
    path = "/console/projects/trial/remove"
    both = post(web, path, member="bob", dataset="people")
    assert (both.status_code, post(web, path).status_code) == (422, 422)
    assert post(web, path, member="bob").is_redirect
    assert post(web, path, member="bob").status_code == 404
    assert post(web, path, member="ana").status_code == 409
    assert post(web, path, dataset="people").is_redirect
    found = desk.services.projects.named("trial")
    assert ([name for _, name in found.members], found.datasets) == (["ana"], ())


def test_a_budget_of_a_project_is_set_in_the_form(
    web: httpx.Client, desk: Desk, request_id: str
) -> None:
    given = {"name": "trial", "members": "ana", "ends_on": "", "reason": "One data set."}
    post(web, f"/console/requests/{request_id}/approve", **given, epsilon_0="1", delta_0="1e-5")
    fields = {"dataset": "secret", "epsilon": "2", "delta": "1e-5", "project": "trial"}
    assert post(web, "/console/budgets/set", **fields, analyst="ana").status_code == 422
    assert post(web, "/console/budgets/set", **fields).status_code == 303
    (project,) = desk.services.projects.all()
    assert project.datasets == ("people", "secret")


def test_a_refusal_says_why(web: httpx.Client, desk: Desk, request_id: str) -> None:
    path = f"/console/requests/{request_id}/refuse"
    assert post(web, path, reason=" ").status_code == 422
    assert post(web, path, reason="No purpose.").status_code == 303
    (asked,) = desk.services.requests.all()
    assert (asked.status, asked.reason, asked.decided_by) == (
        "refused",
        "No purpose.",
        "console:carol",
    )
    assert "<h2>Decide</h2>" not in web.get(f"/console/requests/{request_id}").text


def test_an_auditor_reads_and_is_shown_no_form(desk: Desk, request_id: str) -> None:
    key = desk.services.access.add_curator("dora", frozenset({Role.AUDITOR}), by="t")
    with httpx.Client(base_url=desk.url, timeout=PATIENCE) as web:
        sign_in(web, key)
        for path in ("projects", f"requests/{request_id}", "budgets", "analysts", "analysts/ana"):
            page = web.get(f"/console/{path}")
            assert page.status_code == 200
            forms = re.findall(r'<form[^>]* action="([^"]*)"', page.text)
            assert forms == ["/console/sign-out"], path


@pytest.mark.slow
def test_a_cap_waits_for_a_second_person(web: httpx.Client, desk: Desk) -> None:
    services = desk.services
    policy = services.catalog.facts("people").policy
    services.catalog.set_policy("people", replace(policy, second_person=True), by="t")
    cap = {"dataset": "people", "epsilon": "50", "delta": "0.01"}
    asked = post(web, "/console/budgets/set", **cap)
    assert (asked.status_code, "Waiting for a second person" in asked.text) == (409, True)
    assert "Not done" not in asked.text
    (waiting,) = services.approvals.all()
    own = web.get("/console/proposals").text
    assert f"{waiting.id}/refuse" in own
    assert f"{waiting.id}/approve" not in own
    assert post(web, f"/console/proposals/{waiting.id}/approve").status_code == 403
    keys = {
        role: services.access.add_curator(f"the-{role}", frozenset({role}), by="t")
        for role in (Role.BUDGET_OFFICER, Role.CURATOR)
    }
    for role, status in ((Role.CURATOR, 403), (Role.BUDGET_OFFICER, 303)):
        with httpx.Client(base_url=desk.url, timeout=PATIENCE) as other:
            sign_in(other, keys[role])
            shown = f"{waiting.id}/approve" in other.get("/console/proposals").text
            assert shown == (status == 303)
            path = f"/console/proposals/{waiting.id}/approve"
            assert post(other, path).status_code == status
    filled = filled_in(web, "#set")
    assert {k: filled[k] for k in ("epsilon", "delta", "query_delta")} == {
        "epsilon": "50.0",
        "delta": "0.01",
        "query_delta": "",
    }
    assert post(web, "/console/budgets/set", **(filled | {"dataset": "people"})).status_code == 303
    balance = services.ledger.population_balance("people")
    assert balance is not None
    assert account_json(balance)["total"]["epsilon"] == 50
    assert ">Do it<" not in web.get("/console/proposals").text
    trail = web.get("/console/ledger").text
    assert all(word in trail for word in ("proposal.add", "proposal.approve", "proposal.use"))
    assert post(web, "/console/proposals/ap_absent/refuse").status_code == 404


def filled_in(web: httpx.Client, form: str) -> dict[str, str]:
    """What the form of an approved act is filled in with: nothing is typed again."""
    found = re.search(r'href="([^"]+)">Do it', web.get("/console/proposals").text)
    assert found
    place = html.unescape(found[1])
    assert place.endswith(form)
    page = web.get(place.partition("#")[0]).text
    part = page.partition(f'id="{form[1:]}"')[2].partition("</form>")[0]
    pairs = re.findall(r'<input id="[^"]*" name="(\w+)"[^>]* value="([^"]*)"', part)
    return {name: html.unescape(value) for name, value in pairs}


@pytest.mark.slow
def test_an_approved_credit_is_filled_in(web: httpx.Client, desk: Desk) -> None:
    services = desk.services
    policy = services.catalog.facts("people").policy
    services.catalog.set_policy("people", replace(policy, second_person=True), by="t")
    account = "population:people"
    credit = {"account": account, "primary": "0.25", "delta": "0", "reason": "no answer, & <b>"}
    assert post(web, "/console/budgets/credit", **credit).status_code == 409
    (waiting,) = services.approvals.all()
    services.approvals.approve(waiting.id, by="console:somebody-else")
    filled = filled_in(web, "#credit")
    assert filled == {"primary": "0.25", "delta": "0.0", "reason": "no answer, & <b>"}
    done = post(web, "/console/budgets/credit", account=account, **filled)
    assert done.status_code == 303
    assert services.approvals.one(waiting.id).status == "used"
