# SPDX-License-Identifier: Apache-2.0
"""Puts the console into the application: what its routes share, and the routes."""

from importlib.metadata import version
from pathlib import Path

from fastapi import FastAPI, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from reticent_server.console import (
    entrance,
    files,
    filters,
    keys,
    ledger,
    money,
    pages,
    projects,
    proposals,
)
from reticent_server.console.routing import NOTHING, pages_router
from reticent_server.console.sessions import Sessions
from reticent_server.console.visits import Console
from reticent_server.pipeline.services import Services


def install_console(application: FastAPI, services: Services) -> None:
    """Adds the pages at /console; they are not part of the OpenAPI document."""
    sessions = Sessions(services.peppers, services.clock)
    application.state.console = Console(services, sessions, _templates())
    last = pages_router()
    last.add_api_route("/{path:path}", _nothing, methods=["GET"], response_model=None)
    if services.single_sign_on is not None:
        from reticent_server.console import single_sign_on  # noqa: PLC0415 - its libraries, where they are used

        application.include_router(single_sign_on.router, include_in_schema=False)
    for part in (entrance, pages, keys, money, projects, proposals, ledger, files):
        application.include_router(part.router, include_in_schema=False)
    application.include_router(last, include_in_schema=False)


def _nothing(path: str) -> Response:  # noqa: ARG001
    raise NOTHING


def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters.FILTERS
    environment.globals["version"] = version("reticent-server")
    return environment
