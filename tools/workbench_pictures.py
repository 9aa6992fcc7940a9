# SPDX-License-Identifier: Apache-2.0
"""Draws docs/images/workbench-*.png: the workbench over an invented table, at two widths and in both themes.

python tools/workbench_pictures.py [AXE]      AXE: a file axe.min.js; each page is then checked with it, too
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

from console_pictures import WEEKS, history  # noqa: E402
from support.installations.console import console  # noqa: E402
from support.installations.small import opened  # noqa: E402
from support.processes.chromium import start  # noqa: E402

PICTURES = ROOT / "docs/images"
ASKED = "/workbench/datasets/houses?kind=linear_regression&q.formula=price+~+sqft_living+%2B+grade&epsilon=0.5"
WRONG = "/workbench/datasets/houses?kind=linear_regression&q.formula=price+~+garde&epsilon=0.5"
SIZES = {
    "wide": (1280, "light"),
    "narrow-dark": (390, "dark"),
    "narrow": (390, "light"),
    "wide-dark": (1280, "dark"),
}
KEPT = {
    "dataset": {"wide", "narrow", "wide-dark", "narrow-dark"},
    "release": {"wide", "narrow", "wide-dark", "narrow-dark"},
    "wrong": {"wide"},
    "home": {"wide"},
    "releases": {"narrow"},
    "verify": {"wide"},
}
"""Pictures that are kept; every page is looked at in all four."""

_AXE = "async () => (await axe.run()).violations.map(v => v.id + ': ' + v.nodes.map(n => n.html).join(' | '))"


def main() -> None:
    axe = sys.argv[1] if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory() as folder:
        made = history(Path(folder))
        with opened(made.installation.settings) as services:
            key = services.access.rotate("ada", by="t")
        with console(made) as desk, sync_playwright() as playwright:
            browser = start(playwright)
            page = browser.new_context(base_url=desk.url, bypass_csp=axe is not None).new_page()
            page.goto("/workbench/")
            _shot(page, "sign-in", axe)
            page.get_by_label("Your key").fill(key)
            page.keyboard.press("Enter")
            page.get_by_role("heading", name="Budgets").wait_for()
            for name, path in _paths(page).items():
                page.goto(path)
                _shot(page, name, axe)
            browser.close()


def _paths(page: Page) -> dict[str, str]:
    page.goto("/workbench/releases")
    links = page.locator("a[href^='/workbench/releases/rel_']").all()
    paths = [str(link.get_attribute("href")) for link in links]
    fit = next(i for i, week in enumerate(reversed(WEEKS)) if "formula" in dir(week[1]))
    return {
        "home": "/workbench/",
        "dataset": ASKED,
        "wrong": WRONG,
        "release": paths[fit],
        "releases": "/workbench/releases",
        "budget": "/workbench/budget",
        "compare": f"/workbench/compare?release={paths[fit].rpartition('/')[2]}&release={paths[-1].rpartition('/')[2]}",
        "verify": "/verify",
    }


def _shot(page: Page, name: str, axe: str | None) -> None:
    for size, (width, theme) in SIZES.items():
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        wide = page.evaluate("document.documentElement.scrollWidth")
        if wide > width:
            print(f"{name} at {width}: {wide} pixels wide")
        if axe is not None:
            page.add_script_tag(path=axe)
            for violation in page.evaluate(_AXE):
                print(f"{name}, {size}: {violation}")
        if size in KEPT.get(name, ()):
            page.screenshot(path=PICTURES / f"workbench-{name}-{size}.png", full_page=True)


if __name__ == "__main__":
    main()
