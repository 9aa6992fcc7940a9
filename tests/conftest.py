# SPDX-License-Identifier: Apache-2.0
"""What holds for every test: a run without PostgreSQL, Chromium or R says so; a small installation.

The installation's module is imported when it is asked for: it needs most of the server.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import core, settings

from support import passed, sampling, seeds
from support.databases import postgresql
from support.processes import chromium, latex, memory, r_language

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from reticent_server.pipeline.services import Services
    from support.installations.small import Installation


settings.register_profile("a busy machine", deadline=None, database=None)
settings.load_profile("a busy machine")
os.environ.setdefault("TMPDIR", str(memory.folder()))
SEED = pytest.StashKey[pytest.MonkeyPatch]()
"""What puts a test's noise back."""


def pytest_addoption(parser: pytest.Parser) -> None:
    words = "every seed of noise, tables and examples is shifted by N"
    parser.addoption("--noise-seed", type=int, default=seeds.shift(), metavar="N", help=words)
    words = "another order of files, and of tests in each: that of this seed"
    parser.addoption("--one-case", action="store_true", help="of each test, one case")
    parser.addoption("--shuffle", type=int, metavar="SEED", help=words)
    passed.pytest_addoption(parser)


def pytest_configure(config: pytest.Config) -> None:
    os.environ[seeds.VARIABLE] = str(config.getoption("noise_seed"))
    core.global_force_seed = seeds.shift()
    passed.pytest_configure(config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    sampling.sample(items, one_case=config.getoption("one_case"))
    seed = config.getoption("shuffle")
    if seed is not None:
        items[:] = sampling.shuffled(items, seed)
    config.stash[sampling.COLLECTED] = {
        item.nodeid: not item.get_closest_marker("audit") or bool(item.get_closest_marker("rest"))
        for item in items
    }


def pytest_report_header() -> str:
    return f"seeds are shifted by {seeds.shift()}: --noise-seed {seeds.shift()}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    postgresql.pytest_terminal_summary(terminalreporter)
    chromium.pytest_terminal_summary(terminalreporter)
    r_language.pytest_terminal_summary(terminalreporter)
    latex.pytest_terminal_summary(terminalreporter)


# Hooks and no fixtures: each that every test has takes a tenth of what pytest needs for a test.


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """Noise comes from a seed, in each test its own: no test fails by luck. Those marked real_noise
    draw from the system's random bits; each says how seldom it fails by luck.
    """
    from support.attacks.seeded_noise import is_seeded, seed_noise

    item.stash[SEED] = patch = pytest.MonkeyPatch()
    assert not is_seeded(), "a fixture has left its seed behind"
    if item.get_closest_marker("real_noise") is None:
        seed_noise(patch, item.nodeid)
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Figures that a test has drawn are closed after it: pyplot keeps them, and warns from the
    twentieth on.
    """
    try:
        return (yield)
    finally:
        item.stash[SEED].undo()
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is not None:
            pyplot.close("all")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
    """What several tests share is made from a seed of its own, whichever of them comes first."""
    if fixturedef.scope == "function":
        return (yield)
    from support.attacks.seeded_noise import seed_noise

    with pytest.MonkeyPatch.context() as patch:
        seed_noise(patch, f"{fixturedef.baseid}:{fixturedef.argname}")
        return (yield)


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
