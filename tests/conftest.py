# SPDX-License-Identifier: Apache-2.0
"""What holds for every test: a run without PostgreSQL, Chromium or R says so; a small installation.

The installation's module is imported when it is asked for: it needs most of the server.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from support.databases import postgresql
from support.processes import chromium, memory, r_language

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reticent_server.pipeline.services import Services
    from support.installations.small import Installation


settings.register_profile("a busy machine", deadline=None, derandomize=True)
settings.load_profile("a busy machine")
os.environ.setdefault("TMPDIR", str(memory.folder()))


def pytest_configure() -> None:
    gc.disable()  # nothing that collection makes is garbage


def pytest_collection_finish() -> None:
    """Modules and items live to the end: the garbage collector no longer goes over them, which took half a second each time."""
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    postgresql.pytest_terminal_summary(terminalreporter)
    chromium.pytest_terminal_summary(terminalreporter)
    r_language.pytest_terminal_summary(terminalreporter)


@pytest.fixture(autouse=True)
def _figures_end() -> Iterator[None]:
    """Figures that a test has drawn are closed after it: pyplot keeps them, and warns from the twentieth on."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")


@pytest.fixture(scope="session")
def installation_template(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    from support.installations.small import build

    return build(tmp_path_factory.mktemp("installation"))


@pytest.fixture
def installation(installation_template: Installation, tmp_path: Path) -> Installation:
    """A fresh copy of the small installation."""
    directory = tmp_path / "installation"
    shutil.copytree(installation_template.directory, directory)
    return replace(installation_template, directory=directory)


@pytest.fixture
def services(installation: Installation) -> Iterator[Services]:
    """The services of a fresh copy of the small installation."""
    from support.installations.small import opened

    with opened(installation.settings) as services:
        yield services
