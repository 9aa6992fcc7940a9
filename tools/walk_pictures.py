# SPDX-License-Identifier: Apache-2.0
"""Draws docs/images/walks/*.png and writes docs/walks.md: a curator's first table of four files as
they are on disk, and an analyst's first regression, step by step in a browser.
"""

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from reticent_server.domain.clock import SystemClock  # noqa: E402
from support.documents.session import session  # noqa: E402
from support.installations.console import Desk, History, console  # noqa: E402
from support.installations.small import Installation  # noqa: E402
from support.interfaces import first_visits  # noqa: E402
from support.interfaces.walk import Walk  # noqa: E402
from support.processes.chromium import start  # noqa: E402
from support.tables.disk import FILES, FileOnDisk  # noqa: E402

PICTURES, PAGE = ROOT / "docs/images/walks", ROOT / "docs/walks.md"
COLOURS = 64
"""Of a picture: a page that is shown small is as good with them."""

WIDTH, HEIGHT = 1000, 700
"""Pixels of the window, which is what is drawn: what one sees without scrolling."""

NAMES = {"RETICENT_VAULT_URL": "sqlite:///vault.db", "RETICENT_SECRETS_FILE": "secrets.json"}
WAIT_MS = 240_000
"""For a page that starts a process which reads the file."""

HEAD = """# First visits, step by step

What a curator with a file and an analyst with a key do in a browser, as `tools/walk_pictures.py` \
does it and draws it. Files are taken as they are on disk; none is
edited. A person's time is that of the keystroke-level model (Card, Moran & Newell 1980: .28 s a \
key, 1.1 s to point, 1.35 s to think before each step) and of
reading what is new on each page at 250 words a minute, up to half a minute a page; the machine's \
is measured, on two cores. Bounds and levels come from a codebook that lies beside.
"""


def main() -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        made = installation(Path(folder))
        with console(made, reads=True) as desk, sync_playwright() as playwright:
            browser = start(playwright)
            parts = [curator(browser, desk, each, Path(folder)) for each in FILES]
            parts.append(analyst(browser, desk))
            browser.close()
    PAGE.write_text("\n".join([HEAD, *parts]))


def installation(place: Path) -> History:
    with session(place, NAMES) as terminal:
        terminal.shell(
            "reticent init\nreticent curator add carol --role curator --role budget_officer"
        )
        return History(Installation(place, {}), terminal.key, SystemClock().now())


def curator(browser: Browser, desk: Desk, file: FileOnDisk, folder: Path) -> str:
    walk = begun(browser, desk, file.name.replace(".", "-"))
    walk.page.goto("/console/")
    walk.page.get_by_label("Your key").fill(desk.key)
    walk.page.keyboard.press("Enter")
    walk.page.get_by_role("heading", name="Data sets").wait_for()
    first_visits.curator(walk, file, folder)
    return section(walk, f"A curator with `{file.name}`", file.told)


def analyst(browser: Browser, desk: Desk) -> str:
    """Of the clinic's table, with a profile and a budget that a curator has given."""
    key = first_visits.served(desk.services, "klinik")
    walk = begun(browser, desk, "analyst")
    first_visits.analyst(walk, key, "klinik", "Einkommen", "Alter")
    return section(walk, "An analyst with a key", "The table `klinik` from above, with its profile")


def begun(browser: Browser, desk: Desk, name: str) -> Walk:
    context = browser.new_context(base_url=desk.url, viewport={"width": WIDTH, "height": HEIGHT})
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)

    def shoot(picture: str) -> None:
        drawn = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        drawn.quantize(COLOURS).save(PICTURES / f"{name}-{picture}.png", optimize=True)

    return Walk(page, shoot)


def section(walk: Walk, title: str, told: str) -> str:
    name = "analyst" if "analyst" in title else title.split("`")[1].replace(".", "-")
    person = sum(each.person for each in walk.steps)
    machine = sum(each.machine for each in walk.steps)
    lines = [
        f"## {title}",
        "",
        (
            f"{told}. **{walk.seconds:.0f} s**: {person:.0f} s of the person, {machine:.0f} s of "
            "the machine."
        ),
        "",
    ]
    for number, each in enumerate(walk.steps, 1):
        lines.append(f"{number}. {each.told} ({each.person + each.machine:.0f} s)")
        if each.picture:
            lines += ["", f"    ![{each.told}](images/walks/{name}-{each.picture}.png)", ""]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
