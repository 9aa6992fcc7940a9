# SPDX-License-Identifier: Apache-2.0
"""The application on the curator's port: metrics, for operators.

It is an application of its own, so that no path of the analysts' port leads to it.
"""

from collections.abc import Iterator

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from reticent_server.api.dependencies import Allowed
from reticent_server.api.middleware import BodyLimit, CookieLimit, Edge
from reticent_server.api.problems import install_handlers
from reticent_server.domain.roles import Act
from reticent_server.ledger.service import Ledger
from reticent_server.pipeline.budgets import share_spent
from reticent_server.pipeline.metrics import REGISTRY
from reticent_server.pipeline.services import Services
from reticent_server.web.routing import add_routes
from reticent_server.web.uploads import LONGER

_router = APIRouter()


def make_curator_application(services: Services, workers_files: str | None = None) -> FastAPI:
    """workers_files: the folder in which worker processes count; None: this process does."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.services = services
    app.state.registry = _registry(services.ledger, workers_files)
    add_routes(app, _router)
    install_handlers(app)
    settings = services.settings
    app.add_middleware(
        BodyLimit,
        limit=settings.max_body_bytes,
        seconds=settings.max_body_seconds,
        longer=LONGER,
    )
    app.add_middleware(CookieLimit)
    app.add_middleware(Edge, clock=services.clock, root_path=settings.root_path)
    return app


@_router.get("/metrics", dependencies=[Depends(Allowed(Act.MEASURE))])
def show_metrics(request: Request) -> Response:
    """Prometheus' text format."""
    registry: CollectorRegistry = request.app.state.registry
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


class _Caps(Collector):
    """How much of every population's cap is spent: the larger of the shares of its two amounts; and
    the queue, of all processes. A release leaves it at its deadline, whenever its computation
    ended.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The shares of all caps, and how many releases wait, as the ledger has them now."""
        family = GaugeMetricFamily(
            "reticent_cap_spent_ratio", "Share of a population's cap.", labels=["population"]
        )
        for balance in self._ledger.all_balances():
            if balance.analyst_id is None:
                family.add_metric([balance.population], share_spent(balance))
        yield family
        waiting = "Releases that are charged and not visible yet."
        yield GaugeMetricFamily("reticent_releases_waiting", waiting, value=self._ledger.waiting())


def _registry(ledger: Ledger, workers_files: str | None) -> CollectorRegistry:
    registry = CollectorRegistry()
    if workers_files is None:
        registry.register(REGISTRY)  # a registry collects, too
    else:
        MultiProcessCollector(registry, path=workers_files)  # type: ignore[no-untyped-call]
    registry.register(_Caps(ledger))
    return registry
