# SPDX-License-Identifier: Apache-2.0
"""axe-core over every page of the console and the workbench, and what it does not look at: one
heading of the first level, a scope of every heading of a table, and nothing wider than a telephone.

In the suite all rules run at 1280 pixels on light pages, and that of contrast at 390 on dark ones;
the other pairs are an audit's.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import FilePayload, Page

    from support.installations.console import Desk, History

Theme = Literal["light", "dark"]

ALL: dict[str, object] = {}
LOOKS = [
    pytest.param([(390, "dark", ALL)], id="suite"),
    pytest.param(
        [(1280, "light", ALL), (1280, "dark", ALL), (390, "light", ALL)],
        id="audit",
        marks=pytest.mark.audit,
    ),
]
CONSOLE = ["", "datasets/people", "datasets/people/simulator", "analysts", "analysts/ana"]
CONSOLE += ["analysts/ana/revoke", "budgets?account=population:people", "projects", "proposals"]
CONSOLE += ["ledger", "ledger/verify", "tables"]
WORKBENCH = ["", "releases", "budget", "datasets/people"]
WORKBENCH += ["datasets/people?kind=linear_regression&q.formula=y+~+x&epsilon=1"]
WORKBENCH += ["datasets/people?kind=linear_regression&q.formula=y+~+garde&epsilon=1"]
WORKBENCH += ["datasets/people?choose=t_test"]

_RUN = """async (options) => (await axe.run(document, options)).violations
    .map(v => v.id + ": " + v.nodes.map(n => n.html + " " + n.failureSummary).join(" | "))"""
_SHAPE = """() => [
    document.querySelectorAll("h1").length === 1 ? "" : "not one h1",
    document.querySelector("th:not([scope])") ? "a heading of a table without scope" : "",
    document.documentElement.scrollWidth <= window.innerWidth ? "" : "wider than the window",
].filter(Boolean)"""


@cache
def _axe() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")


def problems(page: Page, looks: list[tuple[int, Theme, dict[str, object]]]) -> list[str]:
    """What is wrong with the page that is open, in each look."""
    page.evaluate(_axe())
    found = []
    for width, theme, rules in looks:
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=theme)
        said = [*page.evaluate(_SHAPE), *page.evaluate(_RUN, rules)]
        found += [f"{page.url} at {width}, {theme}: {each}" for each in said]
    return found


def over(page: Page, paths: list[str], looks: list[tuple[int, Theme, dict[str, object]]]) -> None:
    found = []
    for path in paths:
        page.goto(path)
        found += problems(page, looks)
    assert found == []


@pytest.mark.audit
@pytest.mark.parametrize("looks", LOOKS)
def test_the_console(
    page: Page, desk: Desk, looks: list[tuple[int, Theme, dict[str, object]]]
) -> None:
    over(page, ["/console/sign-in", "/verify"], looks)
    _sign_in(page, "console", desk.key)
    page.goto("/console/ledger")
    release = page.get_by_role("link", name="rel_").first.get_attribute("href") or ""
    table = _table(page)
    over(page, [*(f"/console/{name}" for name in CONSOLE), release, table], looks)
    page.get_by_role("button", name="Check the schema").click()
    page.get_by_text("Not complete").wait_for()
    assert problems(page, looks) == []


@pytest.mark.audit
@pytest.mark.parametrize("looks", LOOKS)
def test_the_workbench(
    page: Page, desk: Desk, history: History, looks: list[tuple[int, Theme, dict[str, object]]]
) -> None:
    over(page, ["/workbench/sign-in"], looks)
    _sign_in(page, "workbench", history.installation.keys["ana"])
    page.goto("/workbench/releases")
    links = page.locator("a[href^='/workbench/releases/rel_']").all()
    releases = [str(link.get_attribute("href")) for link in links]
    compared = "&".join(f"release={each.rpartition('/')[2]}" for each in releases[:2])
    paths = [*WORKBENCH, releases[0].removeprefix("/workbench/"), f"compare?{compared}"]
    over(page, [f"/workbench/{path}" for path in paths], looks)


@pytest.mark.audit
def test_what_is_wrong_is_found(page: Page, desk: Desk) -> None:
    """A page with a picture without words, text that is hardly to be seen, two first headings and a
    wide table.
    """
    page.goto(f"{desk.url}/console/sign-in")
    page.evaluate(
        """() => { document.getElementById("main").innerHTML = '<h1>a</h1><h1>b</h1><img src="/x">'
        + '<table><tr><th>a</th></tr></table><p id="pale">pale</p><input><pre>' + "wide ".repeat(400) + '</pre>';
        document.getElementById("pale").style.color = "#bbb"; }"""
    )
    found = json.dumps(problems(page, [(390, "light", ALL)]))
    for said in ("not one h1", "without scope", "wider than", "color-contrast", "image-alt"):
        assert said in found
    assert "label: " in found


def _table(page: Page) -> str:
    """The place of a file that waits for its schema, with a column of each kind."""
    page.goto("/console/tables")
    content = b"age,town,glad,height\n39,Ghent,yes,1.7\n,Bruges,no,1.8\n"
    file: FilePayload = {"name": "people.csv", "mimeType": "text/csv", "buffer": content}
    page.get_by_label("File with the table").set_input_files(file)
    page.get_by_role("button", name="Send the file").click()
    page.get_by_role("button", name="That is right: go on").click()
    page.get_by_role("heading", name="The schema of people.csv").wait_for()
    return page.url


def _sign_in(page: Page, site: str, key: str) -> None:
    page.goto(f"/{site}/")
    page.get_by_label("Your key").fill(key)
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Sign out").wait_for()
