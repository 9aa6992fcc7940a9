# SPDX-License-Identifier: Apache-2.0
"""What `docker run` does with the image, without an engine."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from tools.packages import people
from tools.packages.asking import asked, output, wait_for
from tools.packages.boxes import Box, Mount, network
from tools.packages.images import Image

STOP_SECONDS = 60  # for the server after SIGTERM: it lets requests end


def alone(image: Image, place: Path, say: Callable[[str], None]) -> None:
    """What `docker run` does: the image's own user, a read-only root, a volume, memory for /tmp."""
    state, uid = place / "state", int(image.user.partition(":")[0])
    place.mkdir()
    (volume,) = image.volumes
    subprocess.run(
        ["cp", "--archive", str(image.root / volume.lstrip("/")), str(state)], check=True
    )
    people.write(state)
    mounts = (Mount(state, volume, writable=True), Mount(None, "/tmp", options="size=256m"))
    assert uid >= 1_000, "the image runs as a user of the system"
    with network() as net:
        box = Box(image.root, net, image.user, image.directory, image.environment, mounts)
        _refuses_writes(box)
        for words in (["init"], *people.commands(volume)):
            said = output(box.command([*image.entrypoint, *words]))
        serving = subprocess.Popen(box.command([*image.entrypoint, *image.command]))
        try:
            wait_for(box.command(image.health), serving)
            asked(net, "http://127.0.0.1:8000", json.loads(said)["key"])
        finally:
            serving.terminate()
            assert serving.wait(STOP_SECONDS) == 0, "the server did not stop as it should"
        for part in ("scheduler", "worker"):
            output(box.command(["dask", part, "--help"]))
    say("the image: init, load, serve, a fit, its health check; a read-only root, its own user")


def _refuses_writes(box: Box) -> None:
    for path in ("/opt/reticent/new", "/usr/new", "/etc/passwd"):
        done = subprocess.run(box.command(["touch", path]), check=False, capture_output=True)
        assert done.returncode, f"{path} can be written in the image"
