# SPDX-License-Identifier: Apache-2.0
"""axe-core over every page of the console and the workbench, and what it does not look at: one
heading of the first level, a scope of every heading of a table, and nothing wider than a telephone.

In the suite all rules run at 1280 pixels on light pages, and that of contrast at 390 on dark ones;
the other pairs are an audit's.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from support.interfaces.accessibility import ALL, Theme, problems

if TYPE_CHECKING:
    from playwright.sync_api import FilePayload, Page

    from support.installations.console import Desk, History

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
WORKBENCH = ["", "releases", "studies", "budget", "datasets/people"]
WORKBENCH += ["datasets/people?kind=linear_regression&q.formula=y+~+x&epsilon=1"]
WORKBENCH += ["datasets/people?kind=linear_regression&q.formula=y+~+garde&epsilon=1"]
WORKBENCH += ["datasets/people?choose=t_test", "datasets/people/table-1"]


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
        + '<table><tr><th>a</th></tr></table><p id="pale">pale</p><input><pre>'
        + "wide ".repeat(400) + '</pre>';
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
