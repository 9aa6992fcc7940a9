# SPDX-License-Identifier: Apache-2.0
"""The workbench by bare requests: every kind has a form and a forecast, what is run is charged
once, and nobody sees anybody else's releases.
"""

import html
import json
import re
from dataclasses import replace
from io import BytesIO
from typing import Any
from urllib.parse import urlencode
from zipfile import ZipFile

import httpx
import pytest
from docx import Document as Word

from reticent_server.domain.query import query_json
from reticent_server.domain.schema import Unit
from reticent_server.kinds import KINDS
from reticent_server.kinds.shared.answers import LEAST_SQUARES, ROBUST
from reticent_server.pipeline.services import Services
from reticent_server.workbench.controls import controls, given, texts
from reticent_server.workbench.drafts import OFFERED, QUESTIONS, asked, draft_of
from reticent_server.workbench.exports import EXPORTS, formats
from reticent_server.workbench.forecasting import POINTS
from support.installations.bench import Bench, Browser
from support.processes.waiting import until

HOSTILE = '"><img src=x onerror=alert(1)>'
FIT = {"kind": "linear_regression", "q.formula": "y ~ x", "epsilon": "1"}


def page_of(browser: Browser, **fields: str) -> httpx.Response:
    return browser.get("/workbench/datasets/people?" + urlencode(fields))


def form_of(reply: httpx.Response) -> dict[str, str]:
    """The hidden fields of the form that spends."""
    form = re.search(
        r"<form method=\"post\" action=\"[^\"]*/run\">(.*?)</form>", reply.text, re.DOTALL
    )
    assert form
    pairs = re.findall(r'name="(\w+)" value="([^"]*)"', form[1])
    return {name: html.unescape(value) for name, value in pairs}


def run(browser: Browser, **fields: str) -> str:
    """The id of a release that the button has made, once it is answered."""
    form = form_of(page_of(browser, **fields))
    reply = browser.post("/workbench/datasets/people/run", data=form)
    assert reply.status_code == 303
    path = reply.headers["location"]
    until(lambda: "the answer is due at" not in browser.get(path).text, every=0.05)
    return str(path.rpartition("/")[2])


def spent(services: Services, name: str) -> float:
    return services.ledger.balances(services.access.analyst(name).id)[0].spent.primary


@pytest.mark.parametrize("kind", OFFERED, ids=lambda kind: kind.name)
def test_a_form_of_every_kind_gives_its_questions_back(kind: Any) -> None:
    """The form is made of the question's fields: each example goes through its texts unchanged."""
    for question in kind.examples:
        stored = query_json(question)
        written = texts(controls(kind), stored)
        back = {"kind": kind.name, **given(controls(kind), written)}
        body = {"dataset": "people", "query": back, "privacy": {"epsilon": 1.0}}
        assert query_json(asked(body).query) == query_json(question)


@pytest.mark.parametrize("columns", ["g", ["g", "h"]])
def test_one_column_or_two_fit_into_a_line_of_a_form(columns: str | list[str]) -> None:
    kind = next(each for each in OFFERED if each.name == "linear_regression")
    written = texts(controls(kind), {"cluster": columns})
    assert "\n" not in "".join(written.values())
    assert given(controls(kind), written) == {"cluster": columns}
    shown = {c.name for c in controls(kind) if c.rank < 3}  # beside the strata, which need it
    assert {"weights", "cluster", "strata"} <= shown


def test_sets_of_columns_are_lines_of_a_form() -> None:
    kind = next(each for each in OFFERED if each.name == "synthetic")
    written = texts(controls(kind), {"cliques": [["g", "h"], ["y"]]})
    assert list(written.values()) == ["g, h\ny"]
    assert given(controls(kind), written) == {"cliques": [["g", "h"], ["y"]]}


@pytest.mark.slow
def test_every_kind_has_a_page_and_a_forecast(bench: Bench) -> None:
    """By its first example, on the table that examples are about; nothing is charged."""
    ana = bench.browser("ana")
    before = spent(bench.services, "ana")
    answered = 0
    for kind in OFFERED:
        fields = texts(controls(kind), query_json(kind.examples[0]))
        reply = page_of(ana, kind=kind.name, epsilon="1", **fields)
        assert reply.status_code in {200, 422}, kind.name
        answered += "Spend ε 1.00 and run" in reply.text
        assert reply.status_code == 422 or "Spend ε 1.00 and run" in reply.text
    assert answered > len(KINDS) / 2
    assert spent(bench.services, "ana") == before


@pytest.mark.slow
def test_a_run_is_charged_once_however_often_it_is_sent(bench: Bench) -> None:
    ana = bench.browser("ana")
    form = form_of(page_of(ana, **FIT))
    before = spent(bench.services, "ana")
    first = ana.post("/workbench/datasets/people/run", data=form)
    after = spent(bench.services, "ana")
    second = ana.post("/workbench/datasets/people/run", data=form)
    assert first.status_code == second.status_code == 303
    assert first.headers["location"] == second.headers["location"]
    assert before < after == spent(bench.services, "ana")


@pytest.mark.slow
def test_a_form_of_another_site_or_without_its_token_charges_nothing(bench: Bench) -> None:
    ana = bench.browser("ana")
    form = form_of(page_of(ana, **FIT))
    before = spent(bench.services, "ana")
    path = "/workbench/datasets/people/run"
    elsewhere = {"Origin": "https://evil.invalid"}
    assert ana.post(path, data=form, headers=elsewhere).status_code == 403
    assert ana.post(path, data=form | {"form_token": "0" * 96}).status_code == 403
    assert ana.post(path, data={"request": form["request"]}).status_code == 403
    of_bob = form_of_another(bench)
    assert ana.post(path, data=form | {"form_token": of_bob}).status_code == 403
    assert spent(bench.services, "ana") == before


def form_of_another(bench: Bench) -> str:
    return bench.browser("bob").form_token("/workbench/")


@pytest.mark.slow
def test_a_release_is_its_owner_s_alone(bench: Bench) -> None:
    """Also a data set without a grant: absent and forbidden are the same reply."""
    release_id = run(bench.browser("ana"), **FIT)
    bob = bench.browser("bob")
    for path in (
        f"/workbench/releases/{release_id}",
        f"/workbench/releases/{release_id}/export/python",
        f"/workbench/compare?release={release_id}&release={release_id}",
        "/workbench/datasets/people",
        "/workbench/datasets/absent",
        "/workbench/releases/rel_absent",
    ):
        assert bob.get(path).status_code == 404, path
    assert release_id not in bob.get("/workbench/releases").text
    token = bob.form_token("/workbench/")
    path = f"/workbench/releases/{release_id}/cancel"
    assert bob.post(path, data={"form_token": token}).status_code == 404


@pytest.mark.slow
def test_a_result_is_shown_compared_and_exported(bench: Bench) -> None:
    ana = bench.browser("ana")
    release_id = run(ana, **(FIT | {"epsilon": "20"}))
    other = run(ana, **(FIT | {"epsilon": "20", "q.formula": "y ~ x + k"}))
    shown = ana.get(f"/workbench/releases/{release_id}").text
    assert "Guarantee." in shown
    assert shown.index(f"<strong>{ROBUST}.</strong>") < shown.index('class="point"')
    assert 'class="point"' in shown
    assert "confidence intervals" in shown
    both = ana.get(f"/workbench/compare?release={release_id}&release={other}")
    assert both.status_code == 200
    assert both.text.count("<code>k</code>") == 1
    assert ana.get(f"/workbench/compare?release={release_id}").status_code == 422
    stored = json.loads(ana.get(f"/workbench/releases/{release_id}/export/json").text)
    for form in formats():
        reply = ana.get(f"/workbench/releases/{release_id}/export/{form}")
        assert reply.headers["content-disposition"].endswith(f'{EXPORTS[form].ending}"')
        if form not in {"json", "word"}:
            assert release_id in reply.text or form == "csv"
        if form in {"markdown", "html", "latex", "csv", "notebook"}:
            assert stored["guarantee"]["statement"][:30] in reply.text
        if form == "word":
            with ZipFile(BytesIO(reply.content)) as parts:
                assert {part.date_time[0] for part in parts.infolist()} == {1980}  # and no clock
            assert Word(BytesIO(reply.content)).paragraphs[0].text == f"Release {release_id}"
    compile(ana.get(f"/workbench/releases/{release_id}/export/python").text, "replay", "exec")
    assert json.loads(ana.get(f"/workbench/releases/{release_id}/export/notebook").text)["cells"]
    assert release_id in ana.get("/workbench/releases?q=y+~+x").text
    assert release_id not in ana.get("/workbench/releases?q=nothing").text


@pytest.mark.slow
def test_what_is_wrong_is_said_at_its_field_and_costs_nothing(bench: Bench) -> None:
    ana = bench.browser("ana")
    wrong = page_of(ana, **(FIT | {"q.formula": "y ~ garde"}))
    assert wrong.status_code == 422
    assert "Nothing charged." in wrong.text
    assert '<pre class="caret">y ~ <mark>g</mark>arde' in wrong.text
    assert page_of(ana, **(FIT | {"epsilon": "much"})).status_code == 422
    assert page_of(ana, **(FIT | {"q.confidence_level": "2"})).status_code == 422
    assert page_of(ana, kind="nothing", epsilon="1").status_code in {200, 422}
    bench.services.ledger.set_population_cap("people", epsilon=0.5, delta=0.01, by="t")
    dear = page_of(ana, **FIT)
    assert '<div id="pays" hidden>' in dear.text
    assert re.search(r'class="run"[^>]* disabled', dear.text)
    assert "ε 0.50 of 0.50 is left" in dear.text


def test_variables_may_be_separated_by_commas_and_are_wrong_at_their_field(bench: Bench) -> None:
    study = {"kind": "study", "q.variables": "y, log(x, 2", "epsilon": "1"}
    page = page_of(bench.browser("ana"), **study).text
    assert 'id="wrong-variables"' in page
    draft = draft_of("people", {**study, "q.variables": 'y, x\nC(g, levels=["a", "b"])'})
    assert draft.body()["query"]["variables"] == ["y", "x", 'C(g, levels=["a", "b"])']


def test_examples_name_the_table_s_own_columns(bench: Bench) -> None:
    page = page_of(bench.browser("ana"), kind="linear_regression").text
    assert "y &gt;= 0 and g == &#34;a&#34;" in page
    assert "y ~ x + C(g)" in page
    assert "grade" not in page


@pytest.mark.slow
def test_text_from_the_address_is_never_markup(bench: Bench) -> None:
    ana = bench.browser("ana")
    for name in ("q.formula", "q.where", "epsilon", "delta", "kind", "add"):
        reply = page_of(ana, **(FIT | {name: HOSTILE}))
        assert "<img" not in reply.text.replace('<img class="mark"', "")
    for path in ("/workbench/releases?", "/workbench/budget?"):
        assert "<img" not in ana.get(path + urlencode({"q": HOSTILE})).text


def test_questions_are_offered_in_plain_words_by_what_one_wants_to_do(bench: Bench) -> None:
    ana = bench.browser("ana")
    for group, kinds in QUESTIONS.items():
        assert kinds, group
        reply = page_of(ana, choose=kinds[0].name)
        for kind in kinds:
            assert html.escape(kind.asks) in reply.text
            assert kind.asks.endswith("?")
    assert sum(map(len, QUESTIONS.values())) == len(OFFERED)


def test_a_chosen_kind_keeps_the_question_and_has_its_own_settings(bench: Bench) -> None:
    fields = {"q.formula": "y ~ x", "q.mechanism": "gradient_descent", "epsilon": "0.7"}
    draft = draft_of("people", {"kind": "linear_regression", "choose": "glm", **fields})
    assert draft.kind.name == "glm"
    assert draft.texts["q.formula"] == "y ~ x"
    assert draft.texts["q.mechanism"] == "newton"
    assert draft.epsilon == "0.7"
    reply = page_of(bench.browser("ana"), kind="linear_regression", choose="glm", **fields)
    assert 'name="kind" value="glm"' in reply.text
    assert "Guarantee." not in reply.text  # chosen, not yet forecast


def test_fields_for_persons_are_shown_where_the_unit_is_one(bench: Bench) -> None:
    facts = bench.services.catalog.facts("people")
    unit = Unit("k", max_rows=4)
    of_persons = replace(facts, schema=replace(facts.schema, unit=unit))
    draft = draft_of("people", FIT)
    names = {c.name for c in draft.controls}
    assert {c.name for c in draft.controls_for(of_persons)} == names
    of_persons_only = {"effects", "persons", "working_correlation"}
    assert names - {c.name for c in draft.controls_for(facts)} == of_persons_only
    filled = draft_of("people", FIT | {"q.effects": "person"})
    assert names - {c.name for c in filled.controls_for(facts)} == of_persons_only - {"effects"}


@pytest.mark.slow
def test_every_point_of_a_forecast_has_its_price(bench: Bench) -> None:
    """What the slider chooses is run without another forecast: the page has each point's sum and
    what is left.
    """
    page = page_of(bench.browser("ana"), **FIT).text
    rows = re.findall(r'data-epsilon="([^"]+)"[^>]* data-cost="([^"]+)" data-covered="(\w+)"', page)
    assert len(rows) == POINTS + 1
    for epsilon, cost, covered in rows:
        assert float(cost) == float(epsilon)
        balance = bench.services.ledger.balances(bench.services.access.analyst("ana").id)[0]
        left = balance.remaining.primary / 1e9
        assert (covered == "yes") == (float(epsilon) <= left)
    assert {covered for _, _, covered in rows} == {"yes"}
    bench.services.ledger.set_population_cap("people", epsilon=0.5, delta=0.01, by="t")
    page = page_of(bench.browser("ana"), **FIT).text
    assert set(re.findall(r'data-covered="(\w+)"', page)) == {"yes", "no"}


def targets_on(page: str) -> list[tuple[str, str, str]]:
    """(first line, width, link) of each target on a page; none where there is one only."""
    table = page.partition('<table class="cards targets"')[2].partition("</table>")[0]
    return re.findall(
        r"<tr[^>]*><th[^>]*>([^<]*)</th><td[^>]*>([^<]*)</td><td[^>]*>(.*?)</td></tr>", table
    )


@pytest.mark.slow
def test_both_targets_stand_side_by_side_with_a_link_to_the_other(bench: Bench) -> None:
    ana = bench.browser("ana")
    (asked, other) = targets_on(page_of(ana, **FIT | {"epsilon": "8"}).text)
    assert (asked[0], asked[2], other[0]) == (ROBUST, "asked", LEAST_SQUARES)
    assert asked[1] != other[1]
    (address,) = re.findall(r'href="([^"#]+)#forecast"', other[2])
    (first, second) = targets_on(ana.get(html.unescape(address)).text)
    assert (first[:2], first[2], second[:2]) == (other[:2], "asked", asked[:2])
    mean = {"kind": "mean", "q.column": "y", "epsilon": "1"}
    assert targets_on(page_of(ana, **mean).text) == []


def test_chips_add_a_column_and_take_it_out() -> None:
    fields = {"kind": "linear_regression", "q.formula": "", "add": "formula:y"}
    first = draft_of("people", fields)
    second = draft_of(
        "people", {**fields, "q.formula": first.texts["q.formula"], "add": "formula:x"}
    )
    third = draft_of(
        "people", {**fields, "q.formula": second.texts["q.formula"], "add": "formula:x"}
    )
    assert second.texts["q.formula"] == "y ~ x"
    assert third.texts["q.formula"].strip() == "y ~"
    spaced = draft_of("people", {**fields, "q.formula": "y ~ x", "add": "formula:a b"})
    assert spaced.texts["q.formula"] == "y ~ x + `a b`"


def test_pages_are_for_analysts_who_have_signed_in_and_are_kept_nowhere(bench: Bench) -> None:
    nobody = bench.browser()
    for path in (
        "/workbench/",
        "/workbench/datasets/people",
        "/workbench/releases",
        "/workbench/budget",
    ):
        reply = nobody.get(path)
        assert (reply.status_code, reply.headers["location"].partition("?")[0]) == (
            303,
            "/workbench/sign-in",
        )
    assert nobody.sign_in("rk_wrong").status_code == 401
    reply = bench.browser("ana").get("/workbench/")
    assert reply.headers["cache-control"] == "no-store"
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "<style" not in reply.text
    assert "onclick" not in reply.text


def test_the_name_of_the_server_leads_to_the_workbench(bench: Bench) -> None:
    reply = bench.browser().get("/")
    assert (reply.status_code, reply.headers["location"]) == (303, "/workbench/")


def test_a_session_of_one_site_opens_no_other(bench: Bench) -> None:
    ana = bench.browser("ana")
    cookie = ana.cookies["reticent-workbench"]
    ana.cookies.set("reticent", cookie)
    assert ana.get("/console/").status_code == 303


def test_a_request_for_budget_is_filed_and_free(bench: Bench) -> None:
    ana = bench.browser("ana")
    fields = {
        "name": "trial",
        "dataset": "people",
        "purpose": "To see",
        "epsilon": "2",
        "delta": "1e-6",
    }
    reply = ana.post(
        "/workbench/budget", data=fields | {"form_token": ana.form_token("/workbench/budget")}
    )
    assert reply.status_code == 303
    assert "pending" in ana.get("/workbench/budget").text
    wrong = ana.post(
        "/workbench/budget",
        data=fields | {"name": "no name!", "form_token": ana.form_token("/workbench/budget")},
    )
    assert wrong.status_code == 422
    assert "To see" in wrong.text
