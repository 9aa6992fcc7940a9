# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a page that is open: axe-core's rules, and what it does not look at."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Page

Theme = Literal["light", "dark"]

ALL: dict[str, object] = {}
"""Rules of axe: all of them."""

_RUN = """async (options) => (await axe.run(document, options)).violations
    .map(v => v.id + ": " + v.nodes.map(n => n.html + " " + n.failureSummary).join(" | "))"""
_SHAPE = """() => [
    document.querySelectorAll("h1").length === 1 ? "" : "not one h1",
    document.querySelector("th:not([scope])") ? "a heading of a table without scope" : "",
    document.documentElement.scrollWidth <= window.innerWidth ? "" : "wider than the window",
].filter(Boolean)"""


@cache
def _axe() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")


def problems(page: Page, looks: list[tuple[int, Theme, dict[str, object]]]) -> list[str]:
    """What is wrong with the page that is open, in each look."""
    page.evaluate(_axe())
    found = []
    for width, theme, rules in looks:
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=theme)
        said = [*page.evaluate(_SHAPE), *page.evaluate(_RUN, rules)]
        found += [f"{page.url} at {width}, {theme}: {each}" for each in said]
    return found
