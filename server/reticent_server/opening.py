# SPDX-License-Identifier: Apache-2.0
"""Opens what is in the database: catalogue, access, ledger. Imports no engine, vault or web
framework, which take a second to import, so that the curator's commands start at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine, inspect, make_url
from sqlalchemy.exc import ArgumentError

from reticent_server.access.approvals import Approvals
from reticent_server.access.identities import Identities
from reticent_server.access.projects import Projects
from reticent_server.access.protocols import Protocols
from reticent_server.access.requests import Requests
from reticent_server.access.rotation import Rotation
from reticent_server.access.secret_places import KeptPeppers, place_of
from reticent_server.access.service import Access
from reticent_server.access.sign_ins import SignIns
from reticent_server.catalog.repository import Catalog
from reticent_server.chain.anchors import Anchor, Anchors
from reticent_server.chain.repository import is_in
from reticent_server.database import connect, disposed_on_failure, is_current, reading
from reticent_server.domain.clock import Clock, SystemClock
from reticent_server.errors import CuratorError
from reticent_server.ledger.service import Ledger
from reticent_server.pipeline.books import Books
from reticent_server.settings import Settings

_ROLLED_BACK = (
    "The database does not have the last entry that {} names: an older copy was restored, or the "
    "ledger was rewritten. What was spent since is not in it. Restore a newer copy; where there is "
    "none, `reticent ledger accept-rollback` counts all that is left of every budget as spent."
)
_NOT_READY = "The database is not ready; run `reticent init` first."
_OLD = "The database is of another version; run `reticent init` to upgrade it."


def open_books(settings: Settings, clock: Clock | None = None, *, older: bool = False) -> Books:
    """Accounts, access and catalogue, for commands that read no private table. older: an older
    copy, whose budgets must not be spent, is opened, too. Raises CuratorError."""
    engine = _current_engine(settings) if older else ready_engine(settings)
    return books_on(engine, settings, clock or SystemClock())


def books_on(engine: Engine, settings: Settings, clock: Clock) -> Books:
    """The same on an engine that is open. Raises CuratorError where the secrets are not ready."""
    peppers = KeptPeppers(place_of(settings))
    access, identities = Access(engine, peppers, clock), Identities(engine, clock)
    return Books(
        clock=clock,
        catalog=Catalog(engine, clock),
        access=access,
        approvals=Approvals(engine, clock),
        projects=Projects(engine, clock),
        protocols=Protocols(engine, clock),
        requests=Requests(engine, clock),
        identities=identities,
        peppers=peppers,
        sign_ins=SignIns(engine, access, identities, clock),
        ledger=Ledger(engine, clock, settings.lease_seconds),
    )


@contextmanager
def open_catalog(
    settings: Settings, clock: Clock | None = None, *, older: bool = False
) -> Iterator[Catalog]:
    """The catalogue alone, for commands that need neither the vault nor the secrets. older: that of
    an older copy, too. Raises CuratorError."""
    engine = _current_engine(settings) if older else ready_engine(settings)
    try:
        yield Catalog(engine, clock or SystemClock())
    finally:
        engine.dispose()


@contextmanager
def open_approvals(settings: Settings, clock: Clock | None = None) -> Iterator[Approvals]:
    """Proposals alone; those of an older copy, too, as to serve it may need a second person. Raises
    CuratorError."""
    engine = _current_engine(settings)
    try:
        yield Approvals(engine, clock or SystemClock())
    finally:
        engine.dispose()


@contextmanager
def open_access(settings: Settings, clock: Clock | None = None) -> Iterator[Access]:
    """Keys and their holders alone, those of an older copy, too. Raises CuratorError."""
    engine = _current_engine(settings)
    try:
        yield Access(engine, KeptPeppers(place_of(settings)), clock or SystemClock())
    finally:
        engine.dispose()


@contextmanager
def open_rotation(settings: Settings, clock: Clock | None = None) -> Iterator[Rotation]:
    """The peppers alone, to change them. Raises CuratorError."""
    engine = ready_engine(settings)
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


def ready_engine(settings: Settings) -> Engine:
    """The engine of a database that may be served. Raises CuratorError for an older copy."""
    engine = _current_engine(settings)
    with disposed_on_failure(engine):
        last = None if settings.anchor_file is None else Anchors(settings.anchor_file).last()
        if last is not None:
            with reading(engine) as connection:
                if not is_in(connection, last):
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
    with disposed_on_failure(engine):
        with reading(engine) as connection:
            if not inspect(connection).has_table("ledger_head"):
                raise CuratorError(_NOT_READY)
        if not is_current(engine):
            raise CuratorError(_OLD)
    return engine
