# SPDX-License-Identifier: Apache-2.0
"""The console over a small installation in which something has happened, served on a loopback
socket.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reticent_server.app import create_app
from reticent_server.domain.amounts import Amounts
from reticent_server.domain.query import Privacy
from reticent_server.domain.roles import STAFF
from reticent_server.kinds.count.kind import Count
from reticent_server.kinds.mean.kind import Mean
from reticent_server.ledger.model import analyst_account
from reticent_server.pipeline.answer import Ask, answer
from reticent_server.pipeline.profile import release_profile
from reticent_server.pipeline.services import Services
from reticent_server.settings import Settings
from support.databases.migrated import SetClock
from support.installations.in_thread import in_thread, loopback
from support.installations.small import Installation, opened, without_reader

DAY = 86_400.0
HOSTILE = '"><img src=x onerror=document.title="owned"><script>document.title="owned"</script>'
"""Text that takes over a page in which it is not escaped."""


@dataclass(frozen=True)
class History:
    """An installation with a week behind it. key: of the curator carol. ended: when the week
    ends.
    """

    installation: Installation
    key: str
    ended: datetime

    def copied(self, directory: Path) -> "History":
        return replace(self, installation=_copied(self.installation, directory))


@dataclass(frozen=True)
class Desk:
    """A served console. services: of the server, in which every reader of private rows raises.
    events: that it has logged.
    """

    url: str
    key: str
    clock: SetClock
    services: Services
    events: Sequence[Mapping[str, Any]]


def make_history(template: Installation, directory: Path) -> History:
    """Releases over a week: a profile, counts and means by ana; a credit with a hostile reason."""
    installation = _copied(template, directory)
    clock = SetClock()
    clock.time = datetime.now(UTC)
    with opened(installation.settings, clock) as services:
        key = services.access.add_curator("carol", STAFF, by="t")
        ana = services.access.authenticate(installation.keys["ana"])
        assert ana is not None
        services.ledger.set_population_cap("people", epsilon=40, delta=0.01, by="cli:carol")
        release_profile(services, "people", epsilon=6.0)
        for query, epsilon in ((Count(), 2.0), (Mean("y"), 12.0), (Count('g == "a"'), 1.0)):
            clock.sleep(1.5 * DAY)
            answer(services, ana, Ask("people", query, Privacy(epsilon)))
        _hostile_reason(services)
    return History(installation, key, clock.time)


def _copied(installation: Installation, directory: Path) -> Installation:
    shutil.copytree(installation.directory, directory)
    return replace(installation, directory=directory)


def _hostile_reason(services: Services) -> None:
    account = analyst_account(services.access.analyst("ana").id, "people")
    services.ledger.credit(account, Amounts(1, 0), reason=HOSTILE, by="cli:carol")


@contextmanager
def console(
    history: History,
    settings_of: Callable[[int], Settings] | None = None,
    *,
    reads: bool = False,
) -> Iterator[Desk]:
    """Serves the console in a thread of this process. settings_of: of a port, where others are
    wanted. reads: whether queries are answered; else every reader of private rows raises.
    """
    clock = SetClock()
    clock.time = history.ended
    with loopback() as listener:
        own = history.installation.settings
        settings = own if settings_of is None else settings_of(listener.getsockname()[1])
        with opened(settings, clock) as seeing:
            services = seeing if reads else without_reader(seeing)
            with in_thread(create_app(services), listener) as served:
                yield Desk(served.url, history.key, clock, services, served.events)


@pytest.fixture(scope="session")
def history(
    installation_template: Installation, tmp_path_factory: pytest.TempPathFactory
) -> History:
    return make_history(installation_template, tmp_path_factory.mktemp("history") / "made")


@pytest.fixture
def desk(history: History, tmp_path: Path) -> Iterator[Desk]:
    with console(history.copied(tmp_path / "desk")) as desk:
        yield desk
