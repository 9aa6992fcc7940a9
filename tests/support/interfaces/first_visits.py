# SPDX-License-Identifier: Apache-2.0
"""The first visits of a curator with a file and of an analyst with a key, as walks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent_server.pipeline.profile import release_profile

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator, Page

    from reticent_server.pipeline.services import Services
    from support.interfaces.walk import Walk
    from support.tables.disk import FileOnDisk


def curator(walk: Walk, file: FileOnDisk, folder: Path) -> str:
    """From the console's first page to a table that is loaded and has a budget; the data set."""
    page, role = walk.page, walk.page.get_by_role
    path = folder / file.name
    file.write(path)
    walk.press(role("link", name="Add a table"), page.get_by_label("File with the table"))
    walk.give(page.get_by_label("File with the table"), str(path))
    walk.press(
        role("button", name="Send the file"),
        role("heading", name=f"What was understood of {file.name}"),
    )
    walk.step("Add a table, choose the file as it is, send it.", "understood")
    go_on = role("button", name="That is right: go on")
    walk.press(go_on, role("heading", name=f"The schema of {file.name}"))
    walk.step("Look at the first rows as they were understood: that is right, go on.")
    if len(file.known) < page.locator("fieldset.column").count() // 2:
        walk.press(role("button", name="Load none of them"), role("heading", name="Columns"))
        walk.step("More columns than are of use: load none of them, then choose.")
    _columns(walk, file)
    walk.step("Fill in bounds and levels from the codebook.", "schema")
    walk.press(role("button", name="Load the table"), role("heading", name="is loaded"))
    walk.step("Load the table.", "loaded")
    heading = role("heading", level=1).inner_text()
    return str(heading.removesuffix(" is loaded"))


def _columns(walk: Walk, file: FileOnDisk) -> None:
    page = walk.page
    for each in page.locator("fieldset.column").all():
        source = each.locator("legend").inner_text()
        use = each.get_by_label("Load this column")
        known = file.known.get(source)
        section = each.locator("xpath=ancestor::details")
        if section.get_attribute("open") is None and known:
            walk.press(section.locator("summary"))
        if (known is not None) != use.is_checked():
            walk.press(use)
        if known is None:
            continue
        for label, text in (
            ("Lower", known.lower),
            ("Upper", known.upper),
            ("Levels, one a line", known.levels),
        ):
            if text:
                walk.fill(each.get_by_label(label), text)


def served(services: Services, dataset: str) -> str:
    """What a curator does next: a cap, a profile, an analyst with a budget; the analyst's key."""
    ledger, access = services.ledger, services.access
    ledger.set_population_cap(dataset, epsilon=10, delta=1e-5, by="t")
    release_profile(services, dataset, epsilon=1.0)
    analyst_id, key = access.add_analyst("ada", by="t")
    ledger.set_analyst_budget(analyst_id, dataset, dataset, epsilon=5, delta=1e-6, by="t")
    access.grant(analyst_id, dataset, by="t")
    return key


def analyst(walk: Walk, key: str, dataset: str, response: str, term: str) -> None:
    """From a key to a regression with its intervals, at the ε that the form offers."""
    page, role = walk.page, walk.page.get_by_role
    page.goto("/workbench/")
    walk.read()
    walk.fill(page.get_by_label("Your key"), "")  # a key is pasted: two keys
    page.get_by_label("Your key").fill(key)
    walk.press(role("button", name="Sign in"), role("heading", name="Data sets"))
    walk.step("Paste the key, sign in.")
    walk.press(role("link", name=dataset).first, role("heading", name=dataset))
    walk.step("Choose the data set.", "codebook")
    walk.press(role("button", name="Model a relation"), role("group", name="Model a relation"))
    one = role("button", name="How does y change with x, others equal?")
    walk.press(one, role("textbox", name="Formula"))
    for column in (response, term):
        chip = _chips(page).get_by_role("button", name=column, exact=True)
        walk.press(chip, role("textbox", name="Formula"))
    walk.step("Say what is asked: a relation, then the response and the term, by a press each.")
    walk.press(role("button", name="Forecast, for free"), role("button", name="Spend"))
    walk.step("Forecast, for free: how wide intervals will be, and the price.", "forecast")
    walk.press(role("button", name="Spend"), role("img", name="interval drawn"))
    walk.step("Run it.", "result")


def _chips(page: Page) -> Locator:
    return page.get_by_role("group", name="Add a column to formula")
