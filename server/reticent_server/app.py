"""Composition root: settings → services → the FastAPI application."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Engine, inspect, make_url
from sqlalchemy.exc import ArgumentError

from reticent_server.access.approvals import Approvals
from reticent_server.access.form_tokens import FormTokens
from reticent_server.access.identities import Identities
from reticent_server.access.projects import Projects
from reticent_server.access.rates import RateLimits
from reticent_server.access.requests import Requests
from reticent_server.access.rotation import Rotation
from reticent_server.access.secret_places import KeptPeppers, place_of, source_url
from reticent_server.access.service import Access
from reticent_server.access.sign_ins import SignIns
from reticent_server.catalog.repository import Catalog
from reticent_server.chain.anchors import Anchor, Anchors
from reticent_server.chain.repository import is_in
from reticent_server.database import connect, is_current, reading
from reticent_server.domain.clock import Clock, SystemClock
from reticent_server.engine.clusters import cluster_for
from reticent_server.engine.local import LocalEngine
from reticent_server.engine.sources import reader_opener
from reticent_server.errors import CuratorError
from reticent_server.ledger.service import Ledger
from reticent_server.pipeline.readiness import Readiness
from reticent_server.pipeline.schedule import ReleaseQueue
from reticent_server.pipeline.services import Services
from reticent_server.pipeline.settling import Settler
from reticent_server.settings import Settings
from reticent_server.vault.adbc import ask, parse_url, refuse_shared_file

if TYPE_CHECKING:
    from fastapi import FastAPI

    from reticent_server.access.oidc.single_sign_on import SingleSignOn

_ROLLED_BACK = (
    "The database does not have the last entry that {} names: an older copy was restored, or the ledger "
    "was rewritten. What was spent since is not in it. See `reticent ledger verify` and the operations guide."
)
_NOT_READY = "The database is not ready; run `reticent init` first."


def create_app(services: Services, *, sweeps: bool = True, console: bool = True) -> "FastAPI":
    """The HTTP application over `services`; `sweeps` as in make_application.

    console: whether the curator's pages are here; they are on the curator's port where there is one.
    """
    # Imported here: the curator's other commands do without a web framework, and start faster.
    from reticent_server.api.application import make_application  # noqa: PLC0415
    from reticent_server.console.application import install_console  # noqa: PLC0415

    application = make_application(services, sweeps=sweeps)
    if console:
        install_console(application, services)
    return application


def create_curator_app(services: Services, workers_files: str | None = None) -> "FastAPI":
    """The application on the curator's port, with the console; `workers_files` as in
    make_curator_application."""
    from reticent_server.api.curator import make_curator_application  # noqa: PLC0415
    from reticent_server.console.application import install_console  # noqa: PLC0415

    application = make_curator_application(services, workers_files)
    install_console(application, services)
    return application


def build_services(settings: Settings, clock: Clock | None = None) -> Services:
    """Opens the databases and reads the secrets; raises CuratorError where either is not ready."""
    clock = clock or SystemClock()
    refuse_shared_file(settings.database_url, settings.vault_url)
    engine = _ready_engine(settings)
    vault_file = parse_url(settings.vault_url).file
    if vault_file is not None and not vault_file.is_file():
        raise CuratorError("The vault is not ready; run `reticent init` first.")
    catalog = Catalog(engine, clock)
    ledger = Ledger(engine, clock, settings.lease_seconds)
    secrets = place_of(settings)
    peppers = KeptPeppers(secrets)
    access = Access(engine, peppers, clock)
    identities = Identities(engine, clock)
    return Services(
        settings=settings,
        clock=clock,
        catalog=catalog,
        access=access,
        approvals=Approvals(engine, clock),
        projects=Projects(engine, clock),
        requests=Requests(engine, clock),
        identities=identities,
        peppers=peppers,
        sign_ins=SignIns(engine, access, identities, clock),
        form_tokens=FormTokens(engine, clock),
        rates=RateLimits(engine, clock, settings.requests_per_minute),
        cancellations=RateLimits(engine, clock, settings.cancels_per_minute, "cancel"),
        sign_in_limits=RateLimits(engine, clock, settings.sign_ins_per_minute, "sign-in"),
        ledger=ledger,
        engine=LocalEngine(
            reader_opener(
                settings.vault_url,
                catalog.source,
                lambda version_id: catalog.facts_of(version_id).schema,
                lambda name: source_url(secrets, name),
                settings.vault_connections,
            ),
            ledger,
            cache_bytes=settings.cache_bytes,
            threads=settings.threads,
            block_rows=settings.block_rows,
            cluster=cluster_for(settings),
        ),
        queue=ReleaseQueue(
            clock,
            slots=settings.release_slots,
            keep=ledger.keep_queued,
            keep_seconds=settings.lease_seconds / 3,
        ),
        settler=Settler(ledger, clock, settings.lease_seconds),
        readiness=Readiness(
            clock,
            {"database": ledger.head, "vault": partial(ask, parse_url(settings.vault_url))},
        ),
        single_sign_on=_single_sign_on(settings, identities, clock),
    )


def _single_sign_on(
    settings: Settings, identities: Identities, clock: Clock
) -> "SingleSignOn | None":
    if not settings.oidc_issuer:
        return None
    from reticent_server.access.oidc.composing import single_sign_on  # noqa: PLC0415 - .05 s

    return single_sign_on(settings, identities, clock)


@contextmanager
def open_catalog(settings: Settings, clock: Clock | None = None) -> Iterator[Catalog]:
    """The catalogue alone, for commands that need neither the vault nor the secrets. CuratorError."""
    engine = _ready_engine(settings)
    try:
        yield Catalog(engine, clock or SystemClock())
    finally:
        engine.dispose()


@contextmanager
def open_approvals(settings: Settings, clock: Clock | None = None) -> Iterator[Approvals]:
    """Proposals alone. Raises CuratorError."""
    engine = _ready_engine(settings)
    try:
        yield Approvals(engine, clock or SystemClock())
    finally:
        engine.dispose()


@contextmanager
def open_access(settings: Settings, clock: Clock | None = None) -> Iterator[Access]:
    """Keys and their holders alone. Raises CuratorError."""
    engine = _ready_engine(settings)
    try:
        yield Access(engine, KeptPeppers(place_of(settings)), clock or SystemClock())
    finally:
        engine.dispose()


@contextmanager
def open_rotation(settings: Settings, clock: Clock | None = None) -> Iterator[Rotation]:
    """The peppers alone, to change them. Raises CuratorError."""
    engine = _ready_engine(settings)
    try:
        yield Rotation(engine, place_of(settings), clock or SystemClock())
    finally:
        engine.dispose()


def open_ledger(settings: Settings, clock: Clock | None = None) -> Ledger:
    """The ledger alone: to verify a database, or a restored copy of one, where there is neither the
    vault nor the secrets. An older copy is opened, too. Raises CuratorError."""
    engine = _current_engine(settings)
    return Ledger(engine, clock or SystemClock(), settings.lease_seconds)


def anchors_of(settings: Settings) -> list[Anchor]:
    """Every anchor that was written down; none where there is no file for them. CuratorError."""
    return [] if settings.anchor_file is None else list(Anchors(settings.anchor_file).all())


def _ready_engine(settings: Settings) -> Engine:
    """The engine of a database that may be served. Raises CuratorError for an older copy."""
    engine = _current_engine(settings)
    last = None if settings.anchor_file is None else Anchors(settings.anchor_file).last()
    if last is not None:
        with reading(engine) as connection:
            if not is_in(connection, last):
                engine.dispose()
                raise CuratorError(_ROLLED_BACK.format(settings.anchor_file))
    return engine


def _current_engine(settings: Settings) -> Engine:
    """The engine of a database that `reticent init` has made; opening it makes no file."""
    try:
        parsed = make_url(settings.database_url)
    except ArgumentError:
        raise CuratorError("RETICENT_DATABASE_URL is not the URL of a database.") from None
    if parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").is_file():
        raise CuratorError(_NOT_READY)
    engine = connect(settings.database_url, settings.database_connections)
    with reading(engine) as connection:
        if not inspect(connection).has_table("ledger_head"):
            raise CuratorError(_NOT_READY)
    if not is_current(engine):
        raise CuratorError("The database is of another version; run `reticent init` to upgrade it.")
    return engine
