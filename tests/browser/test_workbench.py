# SPDX-License-Identifier: Apache-2.0
"""The workbench in a real browser: from a key to a fit with a plot, by keyboard, without a line of
code.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from reticent_server.pipeline.browse import releases
from support.installations.console import History, console
from support.interfaces.accessibility import ALL, problems

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, FilePayload, Page

    from support.installations.console import Desk

NARROW = 390
"""Pixels of a telephone's width."""


@pytest.mark.slow
def test_from_a_key_to_a_fit_with_a_plot(
    browser: Browser, history: History, tmp_path: Path
) -> None:
    copy = history.copied(tmp_path / "bench")
    with console(copy, reads=True) as desk:
        context = browser.new_context(base_url=desk.url, viewport={"width": NARROW, "height": 800})
        page = context.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        _sign_in(page, copy.installation.keys["ana"])
        _forecast(page)
        chosen = float(page.get_by_label("ε, what the query may cost").input_value())
        assert chosen < 15
        page.get_by_role("button", name="Spend").press("Enter")
        page.get_by_role("img", name="interval drawn").first.wait_for()
        assert _charged(copy, desk) == pytest.approx(chosen)
        assert _is_narrow(page)
        assert page.get_by_text("Guarantee.").first.is_visible()
        context.close()
        assert said == []


@pytest.mark.audit
def test_a_study_is_analysed_by_keyboard_for_nothing(
    browser: Browser, history: History, tmp_path: Path
) -> None:
    """From the key to a study, then a regression and correlations without another charge; no page
    has a fault that axe finds.
    """
    copy = history.copied(tmp_path / "bench")
    with console(copy, reads=True) as desk:
        context = browser.new_context(base_url=desk.url, viewport={"width": NARROW, "height": 800})
        page = context.new_page()
        _sign_in(page, copy.installation.keys["ana"])
        page.get_by_role("link", name="Study desk").press("Enter")
        page.get_by_role("link", name="A study of people").press("Enter")
        chips = page.get_by_role("group", name="Add a column to variables")
        for column in ("y", "x", "k"):
            chips.get_by_role("button", name=column, exact=True).press("Enter")
            page.wait_for_load_state()
        page.get_by_label("ε, what the query may cost").fill("15")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Spend").press("Enter")
        page.get_by_role("link", name="open the study desk").press("Enter")
        for column in ("y", "x"):
            page.get_by_role("button", name=column, exact=True).press("Enter")
            page.wait_for_load_state()
        assert page.get_by_role("textbox", name="Formula").input_value() == "y ~ x"
        page.get_by_role("button", name="Compute, for free").press("Enter")
        page.get_by_role("heading", name="1. Regression").wait_for()
        page.get_by_role("button", name="Correlations").press("Enter")
        page.get_by_role("button", name="Compute, for free").press("Enter")
        page.get_by_role("heading", name="2. Correlations").wait_for()
        assert page.get_by_role("img", name="interval drawn").count() >= 4
        looks = [(NARROW, "dark", ALL), (1280, "light", ALL)]
        assert problems(page, looks) == []  # type: ignore[arg-type]
        page.goto("/workbench/studies")
        assert problems(page, looks) == []  # type: ignore[arg-type]
        _pool_two_sites(page)
        assert problems(page, looks) == []  # type: ignore[arg-type]
        context.close()
        ana = desk.services.access.authenticate(copy.installation.keys["ana"])
        assert ana is not None
        stored = json.loads(releases(desk.services, ana, 50, 0))["releases"]
        assert [each["query"]["kind"] for each in stored].count("study") == 1


def _pool_two_sites(page: Page) -> None:
    """Of one's own study and of a file from another server; the browser talks to this one alone."""
    links = page.locator("a[href^='/workbench/studies/rel_']")
    own = str(links.first.get_attribute("href")).rpartition("/")[2]
    study = page.request.get(f"/workbench/releases/{own}/export/json").json()
    content = json.dumps({**study, "id": "rel_of_another_server"}).encode()
    file: FilePayload = {"name": "north.json", "mimeType": "application/json", "buffer": content}
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.get_by_label("File with a study’s release, as JSON").set_input_files(file)
    page.get_by_role("button", name="Open the desk").press("Enter")
    page.get_by_text("cannot check it").wait_for()
    page.goto("/workbench/studies")
    page.get_by_label("Pool north.json").check()
    page.get_by_label(f"Pool {own}").check()
    page.get_by_role("button", name="Pool the chosen studies").press("Enter")
    page.get_by_role("heading", name="Study desk: 2 sites, pooled").wait_for()
    page.get_by_role("textbox", name="Formula").fill("y ~ x + site")
    page.get_by_role("button", name="Compute, for free").press("Enter")
    page.get_by_role("heading", name="1. Regression").wait_for()
    page.get_by_role("button", name="Heterogeneity").press("Enter")
    page.get_by_role("textbox", name="Formula").fill("y ~ x")
    page.get_by_role("button", name="Compute, for free").press("Enter")
    page.get_by_role("heading", name="2. Heterogeneity").wait_for()
    here = page.url.split("/workbench")[0]
    assert [url for url in asked if not url.startswith(here)] == []


def _sign_in(page: Page, key: str) -> None:
    page.goto("/workbench/")
    page.get_by_label("Your key").fill(key)
    page.keyboard.press("Enter")
    page.get_by_role("link", name="people").first.press("Enter")


def _forecast(page: Page) -> None:
    page.get_by_role("button", name="Model a relation").press("Enter")
    page.get_by_role("button", name="How does y change with x, others equal?").press("Enter")
    page.get_by_role("textbox", name="Formula").wait_for()
    assert page.get_by_label("Effects").count() == 0  # one row a record: no persons
    page.get_by_role("button", name="y", exact=True).press("Enter")
    page.get_by_role("button", name="x", exact=True).press("Enter")
    assert page.get_by_role("textbox", name="Formula").input_value() == "y ~ x"
    page.get_by_label("ε, what the query may cost").fill("15")
    page.keyboard.press("Enter")
    page.get_by_role("img", name="Forecast by ε").wait_for()
    assert _is_narrow(page)
    _slide(page)


def _slide(page: Page) -> None:
    """What the slider chooses is priced already: the button names its sum. A question that has
    changed is not run.
    """
    spend = page.get_by_role("button", name="Spend")
    slider = page.get_by_role("slider", name="Try another ε")
    slider.press("ArrowLeft")
    asked = float(page.get_by_label("ε, what the query may cost").input_value())
    assert asked < 15
    assert spend.inner_text() == f"Spend ε {asked:g} and run"
    assert spend.is_enabled()
    page.get_by_role("textbox", name="Formula").fill("y ~ x + k")
    assert spend.is_disabled()
    assert page.get_by_text("The question has changed since this forecast").is_visible()
    page.get_by_role("textbox", name="Formula").fill("y ~ x")
    page.get_by_label("ε, what the query may cost").fill("14.9")
    assert spend.is_disabled()
    slider.press("ArrowLeft")
    assert spend.is_enabled()


def _charged(history: History, desk: Desk) -> float:
    """The ε of ana's one release that has a formula."""
    ana = desk.services.access.authenticate(history.installation.keys["ana"])
    assert ana is not None
    stored = json.loads(releases(desk.services, ana, 50, 0))["releases"]
    (fit,) = [each for each in stored if "formula" in each["query"]]
    return float(fit["charged"]["epsilon"])


def _is_narrow(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))
