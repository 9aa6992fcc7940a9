# SPDX-License-Identifier: Apache-2.0
"""A new curator in a real browser: from a file as it is on disk to a served table, without editing
the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reticent_server.domain.schema import ColumnKind

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator, Page

    from support.installations.console import Desk

CELL_MS = 240_000
"""For a page that starts a process which reads the file: some seconds, and longer on a busy
machine.
"""

FILE = """education-num, zip, sex, Salary
13, 10115, Male, <=50K
9, ?, Female, >50K
10, 20095, Female, <=50K
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "adult.data"
    written.write_text(FILE)
    return written


def send(page: Page, file: Path) -> None:
    page.set_default_timeout(CELL_MS)
    page.get_by_role("link", name="Add a table").click()
    page.get_by_label("File with the table").set_input_files(file)
    page.get_by_role("button", name="Send the file").click()
    page.get_by_role("button", name="That is right: go on").click()
    page.get_by_role("heading", name="The schema of adult.data").wait_for()


def column(page: Page, name: str) -> Locator:
    return page.get_by_role("group", name=name, exact=True)


def fill_in(page: Page) -> None:
    page.get_by_label("Name of the data set").fill("adult")
    years = column(page, "education-num")
    years.get_by_label("Lower").fill("1")
    years.get_by_label("Upper").fill("16")
    zips = column(page, "zip")
    zips.get_by_label("Load this column").uncheck()
    column(page, "sex").get_by_label("Levels, one a line").fill("Female\nMale")
    salary = column(page, "Salary")
    salary.get_by_label("Kind").select_option("boolean")
    salary.get_by_label("Name").fill("high")
    salary.get_by_label("Means true").fill(">50K")
    salary.get_by_label("Means false").fill("<=50K")


@pytest.mark.audit
def test_from_a_file_to_a_table(inside: Page, desk: Desk, file: Path) -> None:
    send(inside, file)
    years = column(inside, "education-num")
    assert years.get_by_label("Name").input_value() == "education_num"
    assert years.get_by_role("listitem").all_inner_texts() == ["13", "9", "10"]
    assert years.get_by_label("Lower").input_value() == ""
    inside.get_by_role("button", name="Check the schema").click()
    inside.get_by_text("Not complete").wait_for()
    inside.get_by_role("alert").get_by_role("link", name="sex").click()
    assert inside.evaluate("location.hash") == "#c2"
    fill_in(inside)
    inside.get_by_role("button", name="Load the table").click()
    inside.get_by_role("heading", name="adult is loaded").wait_for()
    facts = desk.services.catalog.facts("adult")
    names = [(c.name, c.kind) for c in facts.schema.columns]
    assert names == [
        ("education_num", ColumnKind.INTEGER),
        ("sex", ColumnKind.CATEGORICAL),
        ("high", ColumnKind.BOOLEAN),
    ]
    assert facts.n == 3
    inside.get_by_role("link", name="Look at the policy").click()
    inside.get_by_label("Largest ε of a request").fill("2")
    inside.get_by_role("button", name="Set the policy").click()
    inside.get_by_text("The policy is set.").wait_for()
    assert desk.services.catalog.facts("adult").policy.max_epsilon == 2.0


@pytest.mark.audit
def test_only_the_fields_of_the_kind_are_shown_and_what_is_typed_is_kept(
    inside: Page, desk: Desk, file: Path
) -> None:
    send(inside, file)
    salary = column(inside, "Salary")
    assert salary.get_by_label("Levels, one a line").is_visible()
    assert not salary.get_by_label("Lower").is_visible()
    salary.get_by_label("Kind").select_option("numeric")
    assert salary.get_by_label("Lower").is_visible()
    assert not salary.get_by_label("Levels, one a line").is_visible()
    with inside.expect_response("**/draft") as kept:
        salary.get_by_label("Lower").fill("-5")
        salary.get_by_label("Upper").fill("5")
    assert kept.value.status == 204
    inside.reload()
    assert column(inside, "Salary").get_by_label("Lower").input_value() == "-5"
    inside.get_by_role("button", name="Give the file up").click()
    inside.get_by_text("No file of yours waits.").wait_for()


@pytest.mark.audit
def test_without_scripts_and_by_keyboard(
    browser_without_scripts: Page, desk: Desk, file: Path
) -> None:
    page = browser_without_scripts
    page.goto("/console/")
    page.get_by_label("Your key").fill(desk.key)
    page.keyboard.press("Enter")
    send(page, file)
    fill_in(page)
    page.get_by_label("Name of the data set").press("Enter")  # checks: it never loads
    page.get_by_text("The schema is complete. Nothing is loaded yet.").wait_for()
    assert "adult" not in [facts.name for facts in desk.services.catalog.list()]
    page.get_by_role("button", name="Load the table").focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="adult is loaded").wait_for()
    assert desk.services.catalog.facts("adult").n == 3
