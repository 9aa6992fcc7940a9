# SPDX-License-Identifier: Apache-2.0
"""Draws docs/images/pages/*.png, every page of the workbench and of the console over an invented
table, at two widths and in both themes, and writes docs/pages.md, which shows them.
"""

import io
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser, FilePayload, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from reticent_server.domain.clock import SystemClock  # noqa: E402
from reticent_server.domain.query import Privacy  # noqa: E402
from reticent_server.kinds.count.kind import Count  # noqa: E402
from reticent_server.kinds.describe.kind import Describe  # noqa: E402
from reticent_server.kinds.mean.kind import Mean  # noqa: E402
from reticent_server.kinds.shared.linear.query import LinearRegression  # noqa: E402
from reticent_server.kinds.study.kind import Study  # noqa: E402
from reticent_server.pipeline.answer import Ask, answer  # noqa: E402
from support.databases.migrated import SetClock  # noqa: E402
from support.documents.session import session  # noqa: E402
from support.installations.console import DAY, History, console  # noqa: E402
from support.installations.small import Installation, opened  # noqa: E402
from support.processes.chromium import start  # noqa: E402
from support.tables.houses import write_houses  # noqa: E402

PICTURES, PAGE = ROOT / "docs/images/pages", ROOT / "docs/pages.md"
COLOURS = 192
"""Of a picture: flat pages with anti-aliased text are as good with them, at half of the bytes; with
fewer, the curves lose theirs.
"""

LOOKS = {
    "wide": (1280, "light"),
    "wide-dark": (1280, "dark"),
    "narrow": (390, "light"),
    "narrow-dark": (390, "dark"),
}
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
    (1.0, Study(("price", "sqft_living", "grade", "bedrooms")), 2.0),
    (0.5, Describe(("price", "grade", "condition"), by="waterfront"), 1.0),
)
RAISED = 3
"""Questions after which the cap is raised."""

VISITS = b"""patient,age,days-in-care,ward,readmitted,cost
p1,64,3,surgery,no,2210.5
p2,41,1,eye,no,640
p1,64,9,surgery,yes,8120
p3,77,12,heart,yes,9044.2
p4,58,2,?,no,1100
"""
"""An invented file, as a curator would send it."""

NAMES = {"RETICENT_VAULT_URL": "sqlite:///vault.db", "RETICENT_SECRETS_FILE": "secrets.json"}
ASKED = "datasets/houses?kind=linear_regression&q.formula=price+~+sqft_living+%2B+grade&epsilon=0.5"
MADE = urlencode(
    [
        ("done", urlencode({"a": "regression", "formula": "price ~ sqft_living + grade"})),
        ("done", urlencode({"a": "correlations", "variables": "price, grade, bedrooms"})),
    ]
)
"""Two analyses on the study desk."""

WRONG = "datasets/houses?kind=linear_regression&q.formula=price+~+garde&epsilon=0.5"
HEAD = """# Every page

The workbench and the console over an invented table, at 1280 and at 390 pixels, light and dark; \
drawn by `tools/page_pictures.py`. How to use them:
[workbench](how-to/workbench.md), [console](how-to/console.md).
"""


def main() -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        made = history(Path(folder))
        with opened(made.installation.settings) as services:
            key = services.access.rotate("ada", by="t")
        with console(made) as desk, sync_playwright() as playwright:
            browser = start(playwright)
            drawn = _workbench(browser, desk.url, key) | _console(browser, desk.url, made.key)
            browser.close()
    PAGE.write_text(HEAD + "".join(_section(name, title) for name, title in drawn.items()))


def history(place: Path) -> History:
    """Two weeks in which ada asks, and the cap is raised once."""
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
            for number, (days, query, epsilon) in enumerate(WEEKS):
                clock.sleep(days * DAY)
                if number == RAISED:
                    services.ledger.set_population_cap(
                        "houses", epsilon=10, delta=1e-5, by="cli:carol"
                    )
                answer(services, ada, Ask("houses", query, Privacy(epsilon)))
        clock.sleep(DAY)
        return History(installation, terminal.key, clock.time)


def _workbench(browser: Browser, url: str, key: str) -> Mapping[str, str]:
    """Draws; the title of each page by its picture's name."""
    page = _entered(browser, url, "workbench", key)
    page.goto("/workbench/releases")
    paths = [
        str(link.get_attribute("href"))
        for link in page.locator("a[href^='/workbench/releases/rel_']").all()
    ]
    fit = next(i for i, week in enumerate(reversed(WEEKS)) if "formula" in dir(week[1]))
    first, last = (path.rpartition("/")[2] for path in (paths[fit], paths[-1]))
    table, study = (path.rpartition("/")[2] for path in paths[:2])
    places = {
        "studies": "studies",
        "desk": f"studies/{study}?{MADE}",
        "table-1": f"releases/{table}/table-1",
        "table-1-ask": "datasets/houses/table-1",
        "home": "",
        "dataset": ASKED,
        "kinds": "datasets/houses?choose=t_test",
        "wrong": WRONG,
        "release": f"releases/{first}",
        "releases": "releases",
        "compare": f"compare?release={first}&release={last}",
        "budget": "budget",
    }
    drawn = {n: _shot(page, f"workbench-{n}", f"/workbench/{p}") for n, p in places.items()}
    drawn = {f"workbench-{name}": title for name, title in drawn.items()}
    return drawn | {"verify": _shot(page, "verify", "/verify")}


def _console(browser: Browser, url: str, key: str) -> Mapping[str, str]:
    page = _entered(browser, url, "console", key)
    page.goto("/console/ledger")
    release = page.locator("a[href*='/console/releases/']").first.get_attribute("href") or ""
    places = {
        "overview": "",
        "dataset": "datasets/houses",
        "simulator": "datasets/houses/simulator",
        "budgets": "budgets?account=population:houses",
        "release": release.removeprefix("/console/"),
        "analysts": "analysts",
        "analyst": "analysts/ada",
        "projects": "projects",
        "proposals": "proposals",
        "tables": "tables",
        "table": _waiting(page),
        "ledger": "ledger",
        "ledger-verify": "ledger/verify",
    }
    drawn = {n: _shot(page, f"console-{n}", f"/console/{p}") for n, p in places.items()}
    return {f"console-{name}": title for name, title in drawn.items()}


def _waiting(page: Page) -> str:
    """The place of a file that waits for its schema."""
    page.goto("/console/tables")
    file: FilePayload = {"name": "visits.csv", "mimeType": "text/csv", "buffer": VISITS}
    page.get_by_label("File with the table").set_input_files(file)
    page.get_by_role("button", name="Send the file").click()
    page.get_by_role("button", name="That is right: go on").click()
    page.get_by_label("Name of the data set").fill("visits")
    page.get_by_role("group", name="days-in-care", exact=True).get_by_label("Upper").fill("60")
    page.get_by_role("button", name="Check the schema").click()
    page.get_by_text("Not complete").wait_for()
    return page.url.partition("/console/")[2]


def _entered(browser: Browser, url: str, site: str, key: str) -> Page:
    page = browser.new_context(base_url=url).new_page()
    page.goto(f"/{site}/")
    page.get_by_label("Your key").fill(key)
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Sign out").wait_for()
    return page


def _shot(page: Page, name: str, path: str) -> str:
    """Draws a page in each look; its title."""
    for look, (width, theme) in LOOKS.items():
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        page.goto(path)
        page.wait_for_load_state("networkidle")
        drawn = Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB")
        drawn.quantize(COLOURS).save(PICTURES / f"{name}-{look}.png", optimize=True)
    return page.title().removesuffix(" – Reticent")


def _section(name: str, title: str) -> str:
    site = name.partition("-")[0].capitalize()
    pictures = "\n".join(
        f"![{title}, {width} pixels, {theme}](images/pages/{name}-{look}.png)"
        for look, (width, theme) in LOOKS.items()
    )
    return f"\n## {site}: {title}\n{pictures}\n"


if __name__ == "__main__":
    main()
