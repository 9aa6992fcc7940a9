# SPDX-License-Identifier: Apache-2.0
"""The documentation builds without a warning, and every link in it leads somewhere; offline.

The tests of what is built are the audit's: it is built by `make docs`, which each change runs.
"""

import logging
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from mkdocs.commands import build as mkdocs_build

from support.documents.code_blocks import ROOT
from support.kinds.examples import FIELDS


class Page(HTMLParser):
    """What a page links to, and the places in it that can be linked to."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        self.links += [value for name in ("href", "src") if (value := found.get(name))]
        self.places |= {value for name in ("id", "name") if (value := found.get(name))}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; a warning is an error, as with --strict."""
    from mkdocs.config import load_config

    place = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(place))
        config.plugins.on_startup(command="build", dirty=False)
        mkdocs_build.build(config)
    logging.getLogger("mkdocs").handlers.clear()
    return place


def parsed(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text("utf-8"))
    return page


@pytest.mark.audit
def test_every_link_leads_somewhere(site: Path) -> None:
    pages = {path: parsed(path) for path in site.rglob("*.html")}
    assert len(pages) > 30
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                broken.append(f"{path.relative_to(site)}: {link}")
            places = pages[target].places if target in pages else {unquote(parts.fragment)}
            if parts.fragment and unquote(parts.fragment) not in places:
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


@pytest.mark.audit
def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text("utf-8")
        for opening in ('<script src="http', '<link rel="stylesheet" href="http', '<img src="http'):
            assert opening not in text, path


@pytest.mark.audit
def test_the_reference_has_every_command_and_every_name(site: Path) -> None:
    import reticent
    from reticent_server.cli.examples import EXAMPLES

    commands = parsed(site / "reference/command-line.html").places
    assert {name.replace(" ", "-") for name in EXAMPLES} <= commands
    names = parsed(site / "reference/client.html").places
    assert {name.lower() for name in reticent.__all__} <= {place.lower() for place in names}
    assert "/v1/releases" in (site / "reference/http.html").read_text("utf-8")
    assert (site / "reference/release.schema.json").exists()


@pytest.mark.audit
def test_the_first_page_leads_to_every_kind(site: Path) -> None:
    home = parsed(site / "index.html")
    assert {f"kinds/{p.stem}.html" for p in (ROOT / "docs/kinds").glob("*.md")} <= set(home.links)


def test_every_query_kind_has_a_page_with_an_example() -> None:
    """Named in a heading or a table as `kind`, and asked for by a block that is run."""
    pages = [path.read_text("utf-8") for path in (ROOT / "docs/kinds").glob("*.md")]
    for kind in FIELDS:
        method = {"hypothesis_test": "test", "binned_residuals": "residuals"}.get(kind, kind)
        told = [page for page in pages if f"`{kind}`" in page and f"ds.{method}(" in page]
        assert told, kind


def test_links_of_the_readme_lead_somewhere() -> None:
    import re

    text = (ROOT / "README.md").read_text("utf-8")
    for link in re.findall(r"\]\(([^)]+)\)", text):
        if "://" not in link:
            assert (ROOT / link.partition("#")[0]).exists(), link
