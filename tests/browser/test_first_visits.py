# SPDX-License-Identifier: Apache-2.0
"""A curator's first table, of files as they are on disk, and an analyst's first regression: no file
is edited, and a person needs no longer than promised.

What is judged is the model of a person (support.interfaces.walk), which no load of the machine
changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.installations.console import History, console
from support.interfaces import first_visits
from support.interfaces.walk import Walk
from support.tables.disk import FILES, FileOnDisk

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from support.installations.console import Desk

WAIT_MS = 240_000
"""For a page that starts a process which reads the file."""

CURATOR_SECONDS, ANALYST_SECONDS = 270, 170
"""Of five and three minutes what is the person's."""


@pytest.mark.audit
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_as_it_is_on_disk(
    browser: Browser, history: History, tmp_path: Path, file: FileOnDisk
) -> None:
    with console(history.copied(tmp_path / "own"), reads=True) as desk:
        name, seconds = loaded(browser, desk, file, tmp_path)
        assert len(desk.services.catalog.facts(name).schema.columns) == len(file.known)
        assert seconds < CURATOR_SECONDS


@pytest.mark.audit
def test_a_first_regression(browser: Browser, history: History, tmp_path: Path) -> None:
    """Of a table with a profile, at the ε that the form offers."""
    with console(history.copied(tmp_path / "own"), reads=True) as desk:
        name, _ = loaded(browser, desk, FILES[1], tmp_path)
        key = first_visits.served(desk.services, name)
        page = browser.new_context(base_url=desk.url).new_page()
        walk = Walk(page)
        first_visits.analyst(walk, key, name, "Einkommen", "Alter")
        assert sum(step.person for step in walk.steps) < ANALYST_SECONDS
        page.context.close()


def loaded(browser: Browser, desk: Desk, file: FileOnDisk, folder: Path) -> tuple[str, float]:
    """The data set of a file, and the curator's seconds."""
    page = browser.new_context(base_url=desk.url).new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto("/console/")
    page.get_by_label("Your key").fill(desk.key)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Data sets").wait_for()
    walk = Walk(page)
    name = first_visits.curator(walk, file, folder)
    page.context.close()
    return name, sum(step.person for step in walk.steps)
