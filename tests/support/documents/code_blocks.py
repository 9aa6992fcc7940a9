# SPDX-License-Identifier: Apache-2.0
"""The code blocks of the documentation, and the places in which they are run."""

import atexit
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from support.documents.session import Session, session
from support.tables.houses import SCHEMA, write_houses

ROOT = Path(__file__).resolve().parents[3]
SHELL = {"", "sh", "console", "bash"}
_FENCE = re.compile(r"^( *)```(\S*)(.*)$")
_TITLE = re.compile(r'title="([^"]+)"')
_SETUP = re.compile(r"<!-- setup: (loaded|served) -->")
_SKIPPED = re.compile(r"<!-- not run: (.+) -->")


@dataclass(frozen=True)
class Block:
    """A fenced block. title: of a file that it is. reason: why it is not run, or ""."""

    page: str
    line: int
    language: str
    title: str
    text: str
    reason: str


def page_paths() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(path: Path) -> Iterator[Block]:
    """The blocks of a page, in order."""
    before, opened = "", None
    lines: list[str] = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        fence = _FENCE.match(line)
        if opened is None:
            if fence:
                opened, lines = (number, fence), []
            elif line.strip():
                before = line
        elif line.strip() == "```":
            start, match = opened
            title, reason = _TITLE.search(match[3]), _SKIPPED.search(before)
            text = "\n".join(each.removeprefix(match[1]) for each in lines) + "\n"
            yield Block(
                page=str(path.relative_to(ROOT)),
                line=start,
                language=match[2],
                title=title[1] if title else "",
                text=text,
                reason=reason[1] if reason else "",
            )
            before, opened = "", None
        else:
            lines.append(line)


def setup_of(path: Path) -> str:
    """What a page begins with: "" (a table in an empty folder), "loaded" or "served"."""
    found = _SETUP.search(path.read_text("utf-8"))
    if found:
        return found[1]
    return "served" if path.parent.name == "kinds" else ""


def prepare(terminal: Session, setup: str) -> None:
    """Makes what a page begins with. served: also `client` and `ds`, as the user guide names
    them.
    """
    if not setup:
        write_houses(Path("houses.csv"))
        return
    folder, terminal.key = _loaded()
    shutil.copytree(folder, ".", dirs_exist_ok=True)
    if setup == "loaded":
        return
    terminal.shell("reticent serve")
    terminal.python(
        "import reticent\n"
        f'client = reticent.Client("{terminal.url}", key="{terminal.key}")\n'
        'ds = client.dataset("houses")\n'
    )


@cache
def _loaded() -> tuple[Path, str]:
    """A folder with a table, a profile and an analyst, and her key: made once a process, to be
    copied.
    """
    folder = Path(tempfile.mkdtemp(prefix="reticent-documents-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with session(folder) as terminal:
        write_houses(Path("houses.csv"))
        Path("houses.yaml").write_text(SCHEMA, "utf-8")
        terminal.shell(
            "reticent init\n"
            "reticent dataset load houses houses.csv --schema houses.yaml\n"
            "reticent budget set --dataset houses --epsilon 500 --delta 1e-3\n"
            "reticent dataset policy houses --tier unconditional --tier conditional\n"
            "reticent dataset profile houses --epsilon 5\n"
            "reticent analyst add ada --dataset houses --epsilon 60 --delta 1e-4\n"
        )
        return folder, terminal.key


def run(terminal: Session, block: Block) -> None:
    """Runs a block by its language."""
    if block.title:
        Path(block.title).write_text(block.text, "utf-8")
    elif block.language == "python":
        terminal.python(block.text)
    elif block.language in SHELL:
        terminal.shell(block.text)
    else:
        raise AssertionError(f"nobody knows how to run {block.language!r}")
