# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.installations.console import desk, history
from support.processes import chromium

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

    from support.installations.console import Desk

__all__ = ["desk", "history"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Not for the whole run: while Playwright is open, its event loop is in every test's way."""
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright")
    with playwright.sync_playwright() as started:
        browser = chromium.start(started)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, desk: Desk) -> Iterator[Page]:
    """A page of a browser context of its own. What a script says, or a policy blocks, is an
    error.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 900}, base_url=desk.url)
    page = context.new_page()
    page.set_default_timeout(30_000)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    yield page
    context.close()
    # A reply 4xx to a form is said by the browser itself.
    assert [text for text in said if "Failed to load resource" not in text] == []


@pytest.fixture
def inside(page: Page, desk: Desk) -> Page:
    """A page of a curator who has signed in."""
    page.goto("/console/")
    page.get_by_label("Your key").fill(desk.key)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Data sets").wait_for()
    return page


@pytest.fixture
def browser_without_scripts(browser: Browser, desk: Desk) -> Iterator[Page]:
    context = browser.new_context(base_url=desk.url, java_script_enabled=False)
    yield context.new_page()
    context.close()
