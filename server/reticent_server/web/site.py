# SPDX-License-Identifier: Apache-2.0
"""A set of pages below one path, with sessions of its own: the curator's console, the analyst's
workbench."""

from asyncio import Semaphore
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from reticent_server.access.rates import RateLimits
from reticent_server.domain.roles import Act
from reticent_server.pipeline.services import Services
from reticent_server.web import filters
from reticent_server.web.sessions import Sessions

PAGES_AT_ONCE = 8
"""Threads that a site's pages take at most, of 40 that answer everything that is no release: pages
that take long (an audit of a long ledger, a simulation) keep each other waiting, and nobody
else."""

SIGN_INS_AT_ONCE = 4
"""Threads that wait for the identity provider at most, beside those of pages."""

_SHARED = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class SiteIdentity:
    """How a set of pages is called. name: its first path segment. act: what everybody who is let in
    may do. cookie: of its sessions. wrong_key, nobody: what a key or an identity is told that is
    not let in."""

    name: str
    act: Act
    cookie: str
    wrong_key: str
    nobody: str

    @property
    def home(self) -> str:
        """The path of the site's first page."""
        return f"/{self.name}/"

    @property
    def sign_in(self) -> str:
        """The path of the page that asks for a key."""
        return f"/{self.name}/sign-in"


@dataclass(frozen=True, slots=True)
class Site:
    """What the routes of a set of pages share. rates: of each holder's requests; None: no limit but
    that of signing in. flow: of the sign-in at the identity provider; None: keys only. turns: of
    pages that are made in threads, which all of a process's requests share; provider_turns: of
    those among them that wait for the identity provider."""

    identity: SiteIdentity
    services: Services
    sessions: Sessions
    templates: Environment
    rates: RateLimits | None = None
    flow: Any = field(default=None)
    turns: Semaphore = field(default_factory=lambda: Semaphore(PAGES_AT_ONCE))
    provider_turns: Semaphore = field(default_factory=lambda: Semaphore(SIGN_INS_AT_ONCE))

    def __post_init__(self) -> None:
        """Lets templates write `{{ base }}` before each path of this server."""
        self.templates.globals["base"] = self.base

    @property
    def base(self) -> str:
        """The path at which browsers find this server's first page, such as /reticent; or empty."""
        return self.services.settings.root_path


def templates(folder: Path, extra: Mapping[str, Any] | None = None) -> Environment:
    """The templates of a folder, and those that all pages share; text is always escaped."""
    folders: Sequence[Path] = (folder, _SHARED)
    environment = Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters.FILTERS
    environment.filters |= extra or {}
    environment.globals["version"] = version("reticent-server")
    return environment
