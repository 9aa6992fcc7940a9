# SPDX-License-Identifier: Apache-2.0
"""A Dask scheduler and workers as the guide starts them: programs with TLS, and certificates of the
cluster's own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.processes.waiting import until

ROOT = Path(__file__).parents[3]
MAKE = ROOT / "deploy" / "cluster-certificates.sh"
PRIVATE = {  # as in docs/how-to/cluster.md
    "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true",
    "DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES": "[]",
    "DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]",
    "DASK_DISTRIBUTED__ADMIN__LOG_LENGTH": "0",
}


@dataclass(frozen=True)
class Programs:
    """address: of the scheduler. certificates: the folder of what MAKE has made."""

    address: str
    certificates: Path


@contextmanager
def dask_programs(folder: Path, workers: int) -> Iterator[Programs]:
    """A scheduler and so many workers on this machine, which end with the block."""
    certificates = folder / "certificates"
    names = ["scheduler", "worker", "server"]
    subprocess.run(["sh", MAKE, certificates, *names], check=True, capture_output=True)
    place = folder / "scheduler.json"
    with ExitStack() as ending:
        listening = ["--protocol", "tls", "--host", "127.0.0.1", "--port", "0"]
        ending.enter_context(
            _program(certificates, "scheduler", [*listening, "--scheduler-file", str(place)])
        )
        until(place.exists)
        for _ in range(workers):
            one = ["--scheduler-file", str(place), "--nthreads", "1", "--memory-limit", "0"]
            ending.enter_context(
                _program(certificates, "worker", [*one, "--local-directory", str(folder)])
            )
        yield Programs(_address(place), certificates)


def _address(place: Path) -> str:
    return str(json.loads(place.read_text())["address"])


@contextmanager
def _program(certificates: Path, name: str, options: list[str]) -> Iterator[None]:
    tls = {"ca-file": "ca.pem", "cert": f"{name}.pem", "key": f"{name}.key"}
    with_tls = [word for key, file in tls.items() for word in (f"--tls-{key}", certificates / file)]
    command = [sys.executable, "-m", "dask", name, *with_tls, "--no-dashboard", *options]
    paths = os.pathsep.join([str(ROOT / "tests"), *sys.path])
    started = subprocess.Popen(
        command,
        env={**os.environ, **PRIVATE, "PYTHONPATH": paths},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        started.terminate()
        try:
            started.wait(30)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()
