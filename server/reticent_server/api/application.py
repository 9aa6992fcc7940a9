# SPDX-License-Identifier: Apache-2.0
"""The FastAPI application: routes, errors, middleware, and recovery in the background."""

import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from threading import Event, Thread
from typing import Any

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.openapi.utils import get_openapi

from reticent_server.api.middleware import BodyLimit, CookieLimit, Edge
from reticent_server.api.problems import Problem, install_handlers
from reticent_server.api.routes import open_router, router
from reticent_server.events import EventLogger
from reticent_server.intake.staged import sweep
from reticent_server.pipeline import deferred
from reticent_server.pipeline.anchoring import keep_anchored
from reticent_server.pipeline.recovery import recover, unreadable
from reticent_server.pipeline.services import Services
from reticent_server.process import take_short_turns
from reticent_server.web.routing import add_routes
from reticent_server.web.uploads import LONGER

MAX_SWEEP_SECONDS = 30

log = EventLogger(__name__)


def make_application(services: Services, *, sweeps: bool = True) -> FastAPI:
    """The application over `services`, whose engine it closes when it ends.

    sweeps: whether this process finishes abandoned releases; of the workers of a server, one does.
    """
    app = FastAPI(
        title="Reticent",
        version=version("reticent-server"),
        description="Differentially private answers from tables that nobody outside sees.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
    )
    app.state.services = services
    app.state.sweeps = sweeps
    add_routes(app, router)
    add_routes(app, open_router)
    install_handlers(app)
    settings = services.settings
    app.add_middleware(
        BodyLimit,
        limit=settings.max_body_bytes,
        seconds=settings.max_body_seconds,
        longer=LONGER,
    )
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins.split(),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "Prefer"],
            expose_headers=["Location", "Retry-After"],
        )
    app.add_middleware(CookieLimit)
    app.add_middleware(Edge, clock=services.clock, root_path=settings.root_path)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    services: Services = app.state.services
    take_short_turns()
    ended = Event()
    anchoring = Thread(target=_anchor, args=(services, ended, app.state.sweeps), name="anchoring")
    anchoring.start()
    if app.state.sweeps:
        Thread(target=_sweep, args=(services, ended), name="recovery", daemon=True).start()
    yield
    ended.set()
    anchoring.join()
    deferred.close(services)
    services.planner.close()
    services.settler.close()
    services.readiness.close()
    if services.single_sign_on is not None:
        services.single_sign_on.close()
    services.engine.close()


def _anchor(services: Services, ended: Event, writes: bool) -> None:
    """Ends the process, as a signal would, where the database was put back to an older state."""
    if not keep_anchored(services, ended, writes=writes) and not ended.is_set():
        os.kill(os.getpid(), signal.SIGTERM)


def _sweep(services: Services, ended: Event) -> None:
    """Finishes abandoned releases and looks for data sets that cannot be read, at start and again
    and again."""
    away: Mapping[str, str] = {}
    while not ended.is_set():
        try:
            away = unreadable(services, away)
            recover(services)
            sweep(services.settings, services.clock)
        except Exception as error:  # noqa: BLE001 - a sweep that fails is tried again
            log.error("recovery_failed", error=type(error).__name__)
        ended.wait(min(services.settings.lease_seconds, MAX_SWEEP_SECONDS))


def _openapi(app: FastAPI) -> dict[str, Any]:
    """The document, with this project's problems in place of FastAPI's validation errors."""
    if app.openapi_schema is None:
        base = app.state.services.settings.root_path
        document = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
            servers=[{"url": base}] if base else None,
        )
        schemas = document["components"]["schemas"]
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        schemas["Problem"] = Problem.model_json_schema()
        for path in document["paths"].values():
            for operation in path.values():
                _drop_default_422(operation["responses"])
        app.openapi_schema = document
    return app.openapi_schema


def _drop_default_422(responses: dict[str, Any]) -> None:
    if "application/json" in responses.get("422", {}).get("content", {}):
        del responses["422"]
