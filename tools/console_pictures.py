# SPDX-License-Identifier: Apache-2.0
"""Draws docs/images/console-*.png: the console over an invented table, in a headless Chromium."""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from reticent_server.domain.clock import SystemClock  # noqa: E402
from reticent_server.domain.query import Privacy  # noqa: E402
from reticent_server.kinds.count.kind import Count  # noqa: E402
from reticent_server.kinds.linear_regression.query import LinearRegression  # noqa: E402
from reticent_server.kinds.mean.kind import Mean  # noqa: E402
from reticent_server.pipeline.answer import Ask, answer  # noqa: E402
from support.databases.migrated import SetClock  # noqa: E402
from support.documents.session import session  # noqa: E402
from support.installations.console import DAY, Desk, History, console  # noqa: E402
from support.installations.small import Installation, opened  # noqa: E402
from support.processes.chromium import start  # noqa: E402
from support.tables.houses import write_houses  # noqa: E402

PICTURES = ROOT / "docs/images"
CURATOR = """
reticent init
reticent dataset load houses houses.csv --schema houses.yaml
reticent budget set --dataset houses --epsilon 8 --delta 1e-5
reticent dataset profile houses --epsilon 1
reticent analyst add bob --dataset houses --epsilon 3 --delta 1e-6
reticent analyst add ada --dataset houses --epsilon 6 --delta 1e-6
"""
WEEKS = (
    (2.0, LinearRegression("price ~ sqft_living + grade"), 2.0),
    (1.5, Count("grade >= 9"), 0.5),
    (3.0, LinearRegression("price ~ grade + condition"), 2.5),
    (4.0, Mean("price", 'waterfront == "1"'), 1.5),
    (2.5, Count("bedrooms >= 5"), 1.0),
)
NAMES = {"RETICENT_VAULT_URL": "sqlite:///vault.db", "RETICENT_SECRETS_FILE": "secrets.json"}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = history(Path(folder))
        with console(made) as desk, sync_playwright() as playwright:
            browser = start(playwright)
            page = browser.new_page(viewport={"width": 1180, "height": 760}, base_url=desk.url)
            _draw(page, desk)
            browser.close()


def history(place: Path) -> History:
    """Two weeks in which ada asks."""
    write_houses(place / "houses.csv", place / "houses.yaml")
    with session(place, NAMES) as terminal:
        terminal.shell(CURATOR)
        key = terminal.key
        terminal.shell("reticent curator add carol --role curator --role budget_officer")
        installation, clock = Installation(place, {}), SetClock()
        clock.time = SystemClock().now()
        with opened(installation.settings, clock) as services:
            ada = services.access.authenticate(key)
            assert ada is not None
            for days, query, epsilon in WEEKS:
                clock.sleep(days * DAY)
                answer(services, ada, Ask("houses", query, Privacy(epsilon)))
        clock.sleep(DAY)
        return History(installation, terminal.key, clock.time)


def _draw(page: Page, desk: Desk) -> None:
    page.goto("/console/")
    page.get_by_label("Your key").fill(desk.key)
    page.keyboard.press("Enter")
    page.get_by_text("Verified just now").wait_for()
    _shot(page, "overview", 430)
    page.goto("/console/datasets/houses")
    _shot(page, "dataset", 900)
    page.locator("a[href*='/console/releases/']").first.click()
    page.get_by_role("heading", name="What is promised").wait_for()
    _shot(page, "release", 900)
    page.set_viewport_size({"width": 590, "height": 760})  # as 1180 at 200 %
    page.goto("/console/datasets/houses")
    _shot(page, "zoom", 900)


def _shot(page: Page, name: str, height: int) -> None:
    width = (page.viewport_size or {"width": 0})["width"]
    page.set_viewport_size({"width": width, "height": height})
    page.screenshot(path=PICTURES / f"console-{name}.png")


if __name__ == "__main__":
    main()
