# SPDX-License-Identifier: Apache-2.0
"""The console in a real browser: every page and form, by mouse and by keyboard alone.

The server's readers of private rows raise in all of these tests: no page and no form needs a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from reticent_server.chain.tables import entries
from reticent_server.database import writing
from reticent_server.web.sessions import IDLE_SECONDS
from support.installations.console import HOSTILE, Desk

if TYPE_CHECKING:
    from playwright.sync_api import Page

NAME_FIELDS = [
    ("/console/datasets/people", "Largest ε of a request", "Set the policy"),
    ("/console/datasets/people", "δ where a request has none", "Set the policy"),
    ("/console/analysts", "Name", "Add and show the key"),
    ("/console/analysts/ana/revoke", "Type ana to confirm", "Revoke for good"),
    ("/console/ledger", "Search", "Search"),
    ("/console/ledger/verify", "A head that you kept", "Verify against it"),
    ("/console/budgets", "Total ε", "Set the budget"),
    ("/console/budgets", "Total δ", "Set the budget"),
    ("/console/budgets", "Of δ, for queries", "Set the budget"),
    ("/console/budgets", "ε (rule basic) or ρ (rules zcdp and gdp)", "Credit"),
    ("/console/budgets", "δ", "Credit"),
    ("/console/budgets", "Reason", "Credit"),
]
PAGES = ["", "datasets/people", "analysts", "analysts/ana", "analysts/ana/revoke"]
PAGES += ["budgets?account=population:people", "projects", "proposals", "ledger", "ledger/verify"]


@pytest.mark.slow
def test_a_wrong_key_an_expired_session_and_the_way_back(page: Page, desk: Desk) -> None:
    page.goto("/console/ledger")
    page.get_by_label("Your key").fill("rk_wrong")
    page.keyboard.press("Enter")
    page.get_by_text("That is not a key for the console").wait_for()
    assert page.get_by_label("Your key").input_value() == ""
    page.get_by_label("Your key").fill(desk.key)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Audit trail").wait_for()
    page.get_by_text("Verified just now").wait_for()
    desk.clock.sleep(IDLE_SECONDS + 1)
    page.get_by_role("link", name="Budgets").click()
    page.get_by_text("Your session has ended").wait_for()
    page.get_by_label("Your key").fill(desk.key)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Set a budget").wait_for()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("heading", name="Sign in").wait_for()
    page.goto("/console/")
    page.get_by_role("heading", name="Sign in").wait_for()


@pytest.mark.audit
def test_a_data_set_its_charges_and_a_release(inside: Page) -> None:
    inside.get_by_text("Verified just now").wait_for()
    inside.get_by_role("link", name="people").first.click()
    inside.get_by_role("heading", name="Who has spent what").wait_for()
    inside.get_by_role("img", name="Burn-down").wait_for()
    inside.get_by_role("img", name="of the cap is spent").wait_for()
    table = inside.get_by_role("region", name="Analysts' budgets")
    assert table.get_by_role("rowheader", name="ana").count() == 1
    inside.get_by_role("region", name="Columns").get_by_text("a: ").wait_for()
    inside.get_by_role("link", name="rel_").first.click()
    inside.get_by_role("heading", name="What is promised, in plain words").wait_for()
    assert inside.get_by_text("can become at most").count() == 3
    inside.get_by_text("1 in 1,000,000").wait_for()
    entries_of = inside.get_by_role("region", name="The entries of this release")
    assert entries_of.get_by_text("debit").count() == 2


@pytest.mark.slow
def test_an_analyst_is_added_given_a_budget_rotated_and_revoked(inside: Page, desk: Desk) -> None:
    access = desk.services.access
    inside.get_by_role("link", name="Analysts").click()
    inside.get_by_label("Name").fill("dan")
    inside.get_by_role("button", name="Add and show the key").click()
    key = inside.get_by_label("Key", exact=True).input_value()
    holder = access.authenticate(key)
    assert holder is not None
    inside.get_by_role("link", name="Set a budget for dan").click()
    inside.get_by_label("Data set").select_option("people")
    assert inside.get_by_label("Whose").input_value() == "dan"
    inside.get_by_label("Total ε").fill("2")
    inside.get_by_label("Total δ").fill("1e-6")
    inside.get_by_role("button", name="Set the budget").click()
    inside.get_by_text("The budget is set.").wait_for()
    inside.get_by_role("heading", name="dan, people").wait_for()
    assert access.granted(holder.id, "people")

    inside.goto("/console/analysts/dan")
    assert inside.get_by_text(key).count() == 0
    inside.get_by_role("button", name="Rotate the key").click()
    second = inside.get_by_label("Key", exact=True).input_value()
    inside.get_by_role("link", name="To dan's page").click()
    inside.get_by_label("End all old keys now").check()
    inside.get_by_role("button", name="Rotate the key").click()
    third = inside.get_by_label("Key", exact=True).input_value()
    assert [access.authenticate(k) is not None for k in (key, second, third)] == [
        False,
        False,
        True,
    ]

    inside.get_by_role("link", name="To dan's page").click()
    inside.get_by_role("link", name="Revoke access").click()
    inside.get_by_label("Type dan to confirm").fill("Dan")
    inside.get_by_role("button", name="Revoke for good").click()
    inside.get_by_text("Type the analyst's name").wait_for()
    assert not access.analyst("dan").revoked
    inside.get_by_label("Type dan to confirm").fill("dan")
    inside.get_by_role("button", name="Revoke for good").click()
    inside.get_by_text("Access is revoked for good").wait_for()
    assert access.authenticate(third) is None


@pytest.mark.audit
def test_a_cap_is_raised_and_a_credit_is_written(inside: Page, desk: Desk) -> None:
    inside.goto("/console/budgets?dataset=people")
    inside.get_by_label("Total ε").fill("12")
    inside.get_by_label("Total δ").fill("0.01")
    inside.get_by_role("button", name="Set the budget").click()
    inside.get_by_text("More than that is spent already").wait_for()
    assert inside.get_by_label("Total ε").input_value() == "12"
    inside.get_by_label("Total ε").fill("60")
    inside.get_by_role("button", name="Set the budget").click()
    inside.get_by_text("The budget is set.").wait_for()
    inside.get_by_label("Account", exact=True).select_option("population:people")
    inside.get_by_label("ε (rule basic)").fill("1")
    inside.get_by_label("Reason").fill("the machine lost power before anything was sent")
    inside.get_by_role("button", name="Credit").click()
    inside.get_by_text("The credit is written").wait_for()
    balance = desk.services.ledger.population_balance("people")
    assert balance is not None
    assert (balance.epsilon, balance.spent.primary) == (60 * 10**9, 20 * 10**9)


@pytest.mark.slow
def test_the_trail_is_searched_as_one_types_and_paged(inside: Page) -> None:
    inside.goto("/console/ledger")
    table = inside.locator("#entries tbody tr")
    whole = table.count()
    inside.get_by_label("Search").press_sequentially("carol")
    inside.get_by_text("Entries that name “carol”").wait_for()
    assert 0 < table.count() < whole
    assert inside.url.endswith("q=carol")
    inside.reload()
    assert inside.get_by_label("Search").input_value() == "carol"
    inside.goto("/console/ledger?before=4")
    assert table.first.locator("td").first.inner_text() == "3"


@pytest.mark.slow
def test_a_ledger_that_was_changed_is_named(inside: Page, desk: Desk) -> None:
    with writing(desk.services.ledger._engine) as connection:
        connection.exec_driver_sql("DROP TRIGGER IF EXISTS ledger_entries_no_update")
        for (name,) in connection.exec_driver_sql(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).all():
            connection.exec_driver_sql(f'DROP TRIGGER "{name}"')
        connection.execute(entries.update().where(entries.c.seq == 5).values(actor="nobody"))
    inside.get_by_role("link", name="Audit trail").click()
    inside.get_by_text("The ledger is not as its entries say").wait_for()
    inside.get_by_text("Entry 5 does not match its hash").wait_for()


@pytest.mark.audit
def test_markup_in_a_name_field_stays_text(inside: Page) -> None:
    for path, label, button in NAME_FIELDS:
        inside.goto(path)
        inside.get_by_label(label, exact=True).fill(HOSTILE)
        for field in inside.locator("input[required]:visible").all():
            if not field.input_value():
                field.fill("1")
        with inside.expect_navigation(wait_until="load"):
            inside.get_by_role("button", name=button, exact=True).click()
        _nothing_has_run(inside)


@pytest.mark.audit
def test_every_field_that_takes_a_text_is_among_them(inside: Page) -> None:
    found = set()
    for name in PAGES:
        inside.goto(f"/console/{name}")
        for field in inside.locator("input:visible:not([type=checkbox]), textarea:visible").all():
            found.add(field.evaluate("field => field.labels[0].innerText"))
    assert found == {label for _, label, _ in NAME_FIELDS}


@pytest.mark.audit
def test_markup_in_the_sign_in_form_and_in_addresses_stays_text(page: Page, desk: Desk) -> None:
    hostile = quote(HOSTILE)
    page.goto(f"/console/sign-in?next={hostile}")
    page.get_by_label("Your key").fill(HOSTILE)
    page.keyboard.press("Enter")
    page.get_by_text("That is not a key for the console").wait_for()
    _nothing_has_run(page)
    page.get_by_label("Your key").fill(desk.key)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Data sets").wait_for()
    for address in (f"ledger?q={hostile}", f"budgets?account={hostile}", f"analysts/{hostile}"):
        page.goto(f"/console/{address}")
        _nothing_has_run(page)


def _nothing_has_run(page: Page) -> None:
    page.wait_for_load_state(
        "load"
    )  # images that cannot be loaded have told their scripts before it
    assert page.title() != "owned"
    assert page.locator("img:not(.mark)").count() == 0
    assert page.locator("script:not([src])").count() == 0


@pytest.mark.slow
def test_markup_in_stored_names_and_reasons_stays_text(inside: Page) -> None:
    inside.goto("/console/ledger")
    inside.get_by_text("onerror=document.title").wait_for()
    assert inside.locator("img").count() == 0
    assert inside.title() == "Audit trail – Reticent"


@pytest.mark.audit
def test_the_whole_way_by_keyboard(page: Page, desk: Desk) -> None:
    """Sign in, reach the analysts, add one: no mouse, and the focus can always be seen."""

    def tab_to(label: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            focused = page.evaluate(
                "() => { const e = document.activeElement;"
                " return [e.labels?.[0]?.innerText ?? e.innerText, "
                "getComputedStyle(e).outlineStyle] }"
            )
            if (focused[0] or "").strip() == label:
                assert focused[1] == "solid"
                return
        raise AssertionError(f"{label} cannot be reached")

    page.goto("/console/")
    page.wait_for_function(
        "() => document.activeElement.name === 'key'"
    )  # the field has the focus, soon after the load
    page.keyboard.type(desk.key)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Data sets").wait_for()
    tab_to("Skip to the content")
    tab_to("Analysts")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Add an analyst").wait_for()
    tab_to("Name")
    page.keyboard.type("dan")
    tab_to("Add and show the key")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Key of dan").wait_for()
    assert desk.services.access.analyst("dan").live_keys == 1


@pytest.mark.audit
@pytest.mark.parametrize("width", [1280, 640, 360])
def test_no_page_is_wider_than_its_window(inside: Page, width: int) -> None:
    """640: a window of 1280 at 200 %. What is wide scrolls in a region of its own."""
    inside.set_viewport_size({"width": width, "height": 800})
    inside.goto("/console/ledger")
    release = inside.get_by_role("link", name="rel_").first.get_attribute("href") or ""
    for path in [*(f"/console/{name}" for name in PAGES), release]:
        inside.goto(path)
        sizes = inside.evaluate(
            "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert sizes[0] <= sizes[1], path
        regions = inside.locator(".scroll").all()
        assert all(region.get_attribute("tabindex") == "0" for region in regions)


@pytest.mark.slow
def test_pages_work_without_scripts(browser_without_scripts: Page, desk: Desk) -> None:
    page = browser_without_scripts
    page.goto("/console/ledger")
    page.get_by_label("Your key").fill(desk.key)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_label("Search").fill("carol")
    page.get_by_role("button", name="Search").click()
    page.get_by_text("Entries that name “carol”").wait_for()
    page.get_by_role("link", name="Verify the ledger").click()
    page.get_by_text("Verified just now").wait_for()
