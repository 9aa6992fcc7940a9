"""A headless Chromium for the tests of the console, started once a process.

Where there is no Chromium, the tests that need it are skipped, and the end of the run says so in
words that cannot be overlooked (`pytest_terminal_summary`, for tests/conftest.py).
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def executable() -> str | None:
    """The path of a Chromium, else None."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


def start(playwright: Playwright) -> Browser:
    """A browser; skips the test where there is none."""
    path = executable()
    if path is None:
        pytest.skip("no Chromium")
    return playwright.chromium.launch(executable_path=path, args=_FLAGS)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if executable() is None:
        terminalreporter.section("The console was NOT tested", sep="!", red=True, bold=True)
        terminalreporter.line(
            "No Chromium was found, so every test in tests/browser was skipped. Install it "
            "(on Debian: apt-get install chromium) before trusting this run."
        )
