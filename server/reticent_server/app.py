# SPDX-License-Identifier: Apache-2.0
"""Composition root: settings → services → the FastAPI application."""

from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from reticent_server.access.form_tokens import FormTokens
from reticent_server.access.identities import Identities
from reticent_server.access.rates import RateLimits
from reticent_server.access.secret_places import place_of, source_url
from reticent_server.database import disposed_on_failure
from reticent_server.domain.clock import Clock, SystemClock
from reticent_server.engine.clusters import engine_for
from reticent_server.engine.sources import Sources
from reticent_server.errors import CuratorError
from reticent_server.opening import books_on, ready_engine
from reticent_server.pipeline.pace import Pace
from reticent_server.pipeline.planner import Planner
from reticent_server.pipeline.readiness import Readiness
from reticent_server.pipeline.schedule import ReleaseQueue
from reticent_server.pipeline.services import Services
from reticent_server.pipeline.settling import Settler
from reticent_server.settings import Settings
from reticent_server.vault.adbc import Permits, ask, parse_url, refuse_shared_file
from reticent_server.vault.object_store import store_of

if TYPE_CHECKING:
    from fastapi import FastAPI

    from reticent_server.access.oidc.single_sign_on import SingleSignOn


def create_app(services: Services, *, sweeps: bool = True, console: bool = True) -> "FastAPI":
    """The HTTP application over `services`; `sweeps` as in make_application.

    console: whether the curator's pages are here; they are on the curator's port where there is
    one.
    """
    # Imported here: the curator's other commands do without a web framework, and start faster.
    from reticent_server.api.application import make_application  # noqa: PLC0415
    from reticent_server.console.application import install_console  # noqa: PLC0415
    from reticent_server.verification.application import install_verification  # noqa: PLC0415
    from reticent_server.workbench.application import install_workbench  # noqa: PLC0415

    application = make_application(services, sweeps=sweeps)
    install_workbench(application, services)
    install_verification(application, services)
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
    engine = ready_engine(settings)
    with disposed_on_failure(engine):
        return _services_on(engine, settings, clock)


def _services_on(engine: Engine, settings: Settings, clock: Clock) -> Services:
    vault_file = parse_url(settings.vault_url).file
    if vault_file is not None and not vault_file.is_file():
        raise CuratorError("The vault is not ready; run `reticent init` first.")
    books = books_on(engine, settings, clock)
    catalog, ledger = books.catalog, books.ledger
    secrets = place_of(settings)
    sources = Sources(
        settings.vault_url,
        catalog.source,
        lambda version_id: catalog.facts_of(version_id).schema,
        lambda name: source_url(secrets, name),
        Permits(settings.vault_connections),
        store_of(settings),
    )
    return Services(
        settings=settings,
        clock=clock,
        catalog=catalog,
        access=books.access,
        approvals=books.approvals,
        projects=books.projects,
        protocols=books.protocols,
        requests=books.requests,
        identities=books.identities,
        peppers=books.peppers,
        sign_ins=books.sign_ins,
        form_tokens=FormTokens(engine, clock),
        rates=RateLimits(engine, clock, settings.requests_per_minute),
        cancellations=RateLimits(engine, clock, settings.cancels_per_minute, "cancel"),
        sign_in_limits=RateLimits(engine, clock, settings.sign_ins_per_minute, "sign-in"),
        ledger=ledger,
        engine=engine_for(settings, sources.reader, ledger),
        pace=Pace(clock),
        planner=Planner(settings.plan_slots, settings.plan_seconds, settings.plan_megabytes),
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
            sources.probe,
        ),
        single_sign_on=_single_sign_on(settings, books.identities, clock),
    )


def _single_sign_on(
    settings: Settings, identities: Identities, clock: Clock
) -> "SingleSignOn | None":
    if not settings.oidc_issuer:
        return None
    from reticent_server.access.oidc.composing import single_sign_on  # noqa: PLC0415 - .05 s

    return single_sign_on(settings, identities, clock)
