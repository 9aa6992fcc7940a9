# SPDX-License-Identifier: Apache-2.0
"""The services of a compose file as processes: started in their order, asked whether they are
healthy, stopped.
"""

import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.packages.boxes import Box, Mount, Network, resolved
from tools.packages.compose import Service
from tools.packages.images import Image, user_of

HEALTHY_SECONDS = 600  # for one service, on a machine that is busy
ASK_SECONDS = 0.3  # between two questions whether it is healthy
SHOWN = 10_000  # characters of a log, enough for a traceback and what led to it
COMMAND_SECONDS = 900  # for one command, on a machine that is busy


@dataclass(frozen=True, slots=True)
class ServiceOfImage:
    """A service, its image, and what the image is mounted of."""

    service: Service
    image: Image
    extra: tuple[Mount, ...] = ()


@dataclass(slots=True)
class Deployment:
    """hosts: a file that names all services as this network's own. logs: a folder."""

    network: Network
    placed: Mapping[str, ServiceOfImage]
    hosts: Path
    logs: Path
    running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def up(self, names: Sequence[str]) -> None:
        """Starts services in the order of what they depend on; waits for what the file says they
        wait for.
        """
        for name in names:
            self._start(name, set(names))

    def _start(self, name: str, wanted: set[str]) -> None:
        if name in self.running:
            return
        for other, condition in self.placed[name].service.depends_on.items():
            if other in wanted:
                self._start(other, wanted)
                self._wait(other, condition)
        with (self.logs / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                self.box(name).command(self.words(name)), stdout=log, stderr=log
            )

    def _wait(self, name: str, condition: str) -> None:
        if condition == "service_completed_successfully":
            if self.running[name].wait(COMMAND_SECONDS):
                raise SystemExit(f"{name} failed:\n{self.log(name)}")
        elif condition == "service_healthy":
            self.wait_healthy(name)

    def wait_healthy(self, name: str) -> None:
        """Asks as the file or the image says."""
        placed = self.placed[name]
        words = placed.service.health.test or placed.image.health
        assert words, f"{name} has no health check"
        assert not placed.service.health.disabled, name
        ends = time.monotonic() + HEALTHY_SECONDS
        while subprocess.run(
            self.box(name).command(words), check=False, capture_output=True
        ).returncode:
            if time.monotonic() > ends or self.running[name].poll() is not None:
                raise SystemExit(f"{name} is not healthy:\n{self.log(name)}")
            time.sleep(ASK_SECONDS)

    def run(self, name: str, *words: str) -> str:
        """What `docker compose run --rm NAME WORDS…` prints."""
        placed = self.placed[name]
        command = self.box(name).command([*placed.image.entrypoint, *words])
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=COMMAND_SECONDS
        )
        if done.returncode:
            raise SystemExit(f"{name} {' '.join(words)}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def down(self) -> None:
        """Stops all, the last one first, with the time that the file gives each."""
        for name, process in reversed(self.running.items()):
            process.terminate()
            try:
                process.wait(self.placed[name].service.stop_seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise SystemExit(f"{name} did not stop in its time:\n{self.log(name)}") from None
        self.running.clear()

    def log(self, name: str) -> str:
        """What a service wrote, the last of it."""
        return (self.logs / f"{name}.log").read_text("utf-8", "replace")[-SHOWN:]

    def words(self, name: str) -> list[str]:
        """Entrypoint and command, of the file where it has them, else of the image."""
        placed = self.placed[name]
        entry, command = placed.service.entrypoint, placed.service.command
        if command is None:
            command = placed.image.command if entry is None else ()
        return [*(placed.image.entrypoint if entry is None else entry), *command]

    def box(self, name: str) -> Box:
        placed = self.placed[name]
        service, image = placed.service, placed.image
        for mount in service.mounts:
            _fill(image.root, mount)
        return Box(
            image.root,
            self.network,
            image.user if service.user is None else user_of(image.root, service.user),
            image.directory,
            image.environment | service.environment,
            (*placed.extra, Mount(self.hosts, "/etc/hosts"), *service.mounts),
            service.capabilities,
        )


def _fill(root: Path, mount: Mount) -> None:
    """A new volume has what the image has there, with its owner and rights."""
    if mount.source is None or mount.source.exists():
        return
    inside = resolved(root, mount.target)
    if inside.is_dir():
        subprocess.run(["cp", "--archive", str(inside), str(mount.source)], check=True)
    else:
        mount.source.mkdir()
        shutil.chown(mount.source, 0, 0)
