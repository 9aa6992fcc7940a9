# SPDX-License-Identifier: Apache-2.0
"""`reticent serve`: the HTTP server, in one process or several."""

import json
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from reticent_server.allocator import share_arenas
from reticent_server.api.logs import configure_logging, silence
from reticent_server.app import build_services, create_app, create_curator_app
from reticent_server.cli.common import command, err
from reticent_server.cli.listening import listen, refuse_exposure, tls_of, url_of
from reticent_server.cli.running import run, running_beside
from reticent_server.cli.shares import refuse_too_many, shares
from reticent_server.cli.temporary import temporary_folder
from reticent_server.cli.workers import Supervisor, WorkerJob
from reticent_server.domain.roles import Act
from reticent_server.pipeline.calibration import keep_pace
from reticent_server.pipeline.services import Services
from reticent_server.settings import Settings
from reticent_server.web.cookies import reads_cookies_slowly

MAX_WORKERS = 64

TlsFile = typer.Option(exists=True, dir_okay=False, help="PEM file; both, to serve HTTPS.")


@command(Act.INSTALL)
def serve(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8000,
    workers: Annotated[
        int, typer.Option(min=1, max=MAX_WORKERS, help="Processes that answer.")
    ] = 1,
    *,
    tls_cert: Annotated[Path | None, TlsFile] = None,
    tls_key: Annotated[Path | None, TlsFile] = None,
    behind_proxy: Annotated[
        bool,
        typer.Option(
            "--behind-proxy", help="A proxy in front ends TLS, so that http is served to any host."
        ),
    ] = False,
    curator_host: Annotated[
        str, typer.Option(help="The address of the curator's port.")
    ] = "127.0.0.1",
    curator_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Serve /metrics there, and /console there only."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Say where it serves as one line of JSON.")
    ] = False,
) -> None:
    """Answer analysts over HTTP, until SIGTERM or Ctrl-C."""
    share_arenas()
    settings = Settings()
    configure_logging(settings.log_level)
    tls = tls_of(tls_cert, tls_key)
    for address in (host, curator_host) if curator_port is not None else (host,):
        refuse_exposure(address, tls, behind_proxy=behind_proxy)
    with ExitStack() as stack:
        files = None if workers == 1 else stack.enter_context(_workers_files())
        parts = shares(settings, workers)
        services = build_services(parts.parent)
        refuse_too_many(settings, parts)
        listener = listen(host, port)
        _warn(settings)
        silence()
        served = curated = url_of(host, listener, tls)
        if curator_port is not None:
            curators = listen(curator_host, curator_port)
            curated = url_of(curator_host, curators, tls)
            beside = running_beside(create_curator_app(services, files), curators, tls)
            stack.enter_context(beside)
        metrics = f"{curated}/metrics" if curator_port is not None else None
        places = Places(served, f"{curated}/console", metrics, os.getpid())
        text = json.dumps(asdict(places)) if as_json else places.sentences()
        _answer(
            services,
            WorkerJob(parts.worker, listener, tls, workers, console=curator_port is None),
            text,
        )


@dataclass(frozen=True, slots=True)
class Places:
    """Where what is served. metrics: on the curator's port only."""

    url: str
    console: str
    metrics: str | None
    process: int

    def sentences(self) -> str:
        """What the terminal shows once the server answers: addresses, and how to end it."""
        lines = [f"Reticent serves at {self.url} (process {self.process})"]
        if self.metrics is not None:
            lines.append(f"Metrics are at {self.metrics}")
        lines.append(f"The curator's console is at {self.console}")
        return "\n".join([*lines, "Ctrl-C or SIGTERM ends it."])


def _answer(services: Services, job: WorkerJob, text: str) -> None:
    def announce() -> None:
        typer.echo(text)
        sys.stdout.flush()

    if job.workers == 1:
        keep_pace(services, job.workers)
        run(create_app(services, console=job.console), job.listener, job.tls, announce)
        return
    raise typer.Exit(Supervisor(job).run(announce))


@contextmanager
def _workers_files() -> Iterator[str]:
    """The folder in which worker processes count, named to them through the environment."""
    with temporary_folder("reticent-metrics-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        yield folder


def _warn(settings: Settings) -> None:
    if reads_cookies_slowly():
        err.print(
            f"Warning: Python {platform.python_version()} reads cookies in a time that lets one "
            "request stop a server (CVE-2024-7592). This server does not read them so; other "
            "software on this Python may. 3.11.10, 3.12.6 and later do not have the fault."
        )
    if settings.reply_grid_ms == 0:
        err.print(
            "Warning: RETICENT_REPLY_GRID_MS=0 answers as soon as a computation ends, and the time "
            "may depend on private cells. For tests only."
        )
