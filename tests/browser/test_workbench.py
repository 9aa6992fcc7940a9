# SPDX-License-Identifier: Apache-2.0
"""The workbench in a real browser: from a key to a fit with a plot, by keyboard, without a line of code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.installations.console import History, console

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

NARROW = 390
"""Pixels of a telephone's width."""


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
        page.get_by_role("button", name="Spend").press("Enter")
        page.get_by_role("img", name="interval drawn").first.wait_for()
        assert _is_narrow(page)
        assert page.get_by_text("Guarantee.").first.is_visible()
        context.close()
        assert said == []


def _sign_in(page: Page, key: str) -> None:
    page.goto("/workbench/")
    page.get_by_label("Your key").fill(key)
    page.keyboard.press("Enter")
    page.get_by_role("link", name="people").first.press("Enter")


def _forecast(page: Page) -> None:
    page.get_by_label("Kind of query").select_option("linear_regression")
    page.get_by_role("button", name="Show its fields").press("Enter")
    page.get_by_role("button", name="y", exact=True).press("Enter")
    page.get_by_role("button", name="x", exact=True).press("Enter")
    assert page.get_by_role("textbox", name="Formula").input_value() == "y ~ x"
    page.get_by_label("ε, what the query may cost").fill("15")
    page.keyboard.press("Enter")
    page.get_by_role("img", name="Forecast by ε").wait_for()
    assert _is_narrow(page)
    slider = page.get_by_role("slider", name="Try another ε")
    slider.press("ArrowLeft")
    assert page.get_by_role("button", name="Spend").is_disabled()
    slider.press("ArrowRight")
    assert page.get_by_role("button", name="Spend").is_enabled()


def _is_narrow(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))
