# SPDX-License-Identifier: Apache-2.0
"""The image, what it runs by itself, and the deployment of docker-compose.yml, where Debian's tools are."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.packages import people
from tools.packages.boxes import Box, Mount, Network, network
from tools.packages.compose import services
from tools.packages.deployment import Deployment, Placed
from tools.packages.environments import PROGRAMS, ROOT
from tools.packages.images import Image, base, built, missing
from tools.packages.stand_ins import BY_IMAGE

SECONDS = 900  # for one command, on a machine that is busy
READY_SECONDS = 600  # for a server to become ready, on a machine that is busy
SCHEDULER = "tls://scheduler:8786"  # as docs/how-to/deploy.md says

Say = Callable[[str], None]


def run(place: Path, say: Say) -> None:
    """Builds the image and goes through both; loud where this machine cannot."""
    why = missing()
    if why is not None:
        line = "*" * 78
        say(f"\n{line}\nTHE CONTAINER WAS NOT TRIED: {why}.\n{line}")
        return
    with built(place, base(say)) as image:
        say("the image is built")
        alone(image, place / "alone", say)
        compose(image, place / "compose", say)


def alone(image: Image, place: Path, say: Say) -> None:
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
            said = _output(box.command([*image.entrypoint, *words]))
        serving = subprocess.Popen(box.command([*image.entrypoint, *image.command]))
        try:
            _wait_for(box.command(image.health), serving)
            _asked(net, "http://127.0.0.1:8000", json.loads(said)["key"])
        finally:
            serving.terminate()
            assert serving.wait(60) == 0, "the server did not stop as it should"
        for part in ("scheduler", "worker"):
            _output(box.command(["dask", part, "--help"]))
    say("the image: init, load, serve, a fit, its health check; a read-only root, its own user")


def compose(image: Image, place: Path, say: Say) -> None:
    """load → fit → restart → verify, by all services of the file, the last time with Dask's."""
    project = prepare(place)
    with network() as net:
        site = Site(image, project, place, net)
        first = site.deployment({})
        if first is None:
            return
        try:
            first.up(site.named("db", "init", "server", "proxy"))
            first.wait_healthy("server")
            *_, said = [first.run("curator", *words) for words in people.commands("/tables")]
            key = json.loads(said)["key"]
            released = site.asked(first, key)
        finally:
            first.down()
        say("compose: init, load, a fit through the proxy, stopped")
        clustered = {"RETICENT_ENGINE": "dask", "RETICENT_DASK_SCHEDULER": SCHEDULER}
        again = site.deployment(clustered)
        assert again is not None
        try:
            again.up(site.named("db", "init", "scheduler", "worker", "server", "proxy"))
            again.wait_healthy("server")
            site.asked(again, key, released)
            files = ["--parquet", "/data", "--schema", "/tables/people.yaml"]
            again.run("curator", "dataset", "register", "people", *files)
            site.asked(again, key)
            assert "Receive client connection" in again.log("scheduler"), again.log("server")
            assert "Registered to" in again.log("worker"), again.log("worker")
            again.run("curator", "ledger", "verify")
        finally:
            again.down()
        say(
            "compose: started again with a cluster, the release read again, a fit, the ledger verified"
        )


@dataclass(frozen=True, slots=True)
class Site:
    """image: of this project. project: the folder of the compose file. place: for roots, volumes and logs."""

    image: Image
    project: Path
    place: Path
    network: Network

    def named(self, *names: str) -> list[str]:
        """Those that can be started here."""
        return [name for name in names if name != "proxy" or shutil.which("caddy")]

    def deployment(self, given: dict[str, str]) -> Deployment | None:
        """The file's services with what .env would say; None where PostgreSQL is not installed."""
        found = services(self.project, given, self.place / "volumes")
        hosts = self.place / "hosts"
        hosts.write_text("".join(f"127.0.0.1 {name}\n" for name in ["localhost", *found]))
        placed = {}
        for name, service in found.items():
            kind = service.image.partition(":")[0]
            if kind == "reticent":
                placed[name] = Placed(service, self.image)
            elif kind in BY_IMAGE:
                root = self.place / "roots" / name
                shutil.rmtree(root, ignore_errors=True)
                root.mkdir(parents=True)
                made = BY_IMAGE[kind](root)
                if made is not None:
                    placed[name] = Placed(service, made.image, made.mounts)
        for name in ("db", "proxy"):
            if name not in placed:
                print(
                    f"*** {name} OF THE COMPOSE FILE WAS NOT TRIED: its program is not installed ***"
                )
        return Deployment(self.network, placed, hosts, self.place) if "db" in placed else None

    def asked(self, running: Deployment, key: str, released: str | None = None) -> str:
        """A fit, or what was released before, as an analyst gets it; its id."""
        if "proxy" not in running.running:
            return _asked(self.network, "http://server:8000", key, released)
        authority = self.place / "volumes/certificates/caddy/pki/authorities/local/root.crt"
        _wait_for(["test", "-s", str(authority)], running.running["proxy"])
        trusted = {"SSL_CERT_FILE": str(authority)}
        place, console = "https://localhost", "https://localhost:8443/console/sign-in"
        _program(self.network, "reached", [console], trusted)
        return _asked(self.network, place, key, released, trusted)


def prepare(place: Path) -> Path:
    """A copy of the compose file with the folder `deploy`, its secrets, a table and certificates for a cluster."""
    project = place / "project"
    (place / "volumes").mkdir(parents=True)
    shutil.copytree(ROOT / "deploy", project / "deploy", ignore=_made)
    shutil.copy(ROOT / "docker-compose.yml", project)
    deploy = project / "deploy"
    owner = _output(["id", "-u", "postgres"]).strip()
    given = os.environ | {"POSTGRES_UID": owner}
    subprocess.run([str(deploy / "make-secrets.sh")], env=given, check=True)
    user = (deploy / "tables").stat().st_uid
    people.write(deploy / "tables")
    people.write(place)
    _output([sys.executable, "-I", str(PROGRAMS / "parquet.py"), str(place)])
    for part in (place / "parts").iterdir():
        shutil.copy(part, deploy / "parquet")
    _certificates(deploy / "dask")
    for folder in ("tables", "parquet", "dask"):
        for path in (deploy / folder).iterdir():
            os.chown(path, user, user)
            path.chmod(0o400)
    return project


def _made(_folder: str, names: list[str]) -> set[str]:
    """What make-secrets.sh makes is not copied: the clone may be in use."""
    return {"secrets", "anchors", "tables", "parquet", "dask"} & set(names)


def _certificates(folder: Path) -> None:
    """One that signs itself, in all the places where the compose file names one."""
    key, certificate = folder / "server-key.pem", folder / "server.pem"
    made = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=scheduler"]
    _output(["openssl", "req", *made, "-keyout", str(key), "-out", str(certificate)])
    shutil.copy(key, folder / "client-key.pem")
    for name in ("client.pem", "ca.pem"):
        shutil.copy(certificate, folder / name)


def _refuses_writes(box: Box) -> None:
    for path in ("/opt/reticent/new", "/usr/new", "/etc/passwd"):
        done = subprocess.run(box.command(["touch", path]), check=False, capture_output=True)
        assert done.returncode, f"{path} can be written in the image"


def _output(words: Sequence[str]) -> str:
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        raise SystemExit(f"{words[-3:]} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def _wait_for(words: Sequence[str], process: "subprocess.Popen[bytes]") -> None:
    """Until a command succeeds, as long as a process lives."""
    ends = time.monotonic() + READY_SECONDS
    while subprocess.run(words, check=False, capture_output=True).returncode:
        if time.monotonic() > ends or process.poll() is not None:
            raise SystemExit(f"{words[-3:]} did not succeed")
        time.sleep(0.3)


def _asked(
    net: Network,
    url: str,
    key: str,
    released: str | None = None,
    given: dict[str, str] | None = None,
) -> str:
    arguments = [url] if released is None else [url, f"released={released}"]
    said = _program(net, "asked", arguments, {"RETICENT_KEY": key, **(given or {})})
    return str(json.loads(said)["id"])


def _program(net: Network, name: str, arguments: Sequence[str], given: dict[str, str]) -> str:
    """What a file of the folder `programs` prints in a network."""
    variables = [f"{key}={value}" for key, value in given.items()]
    words = ["env", *variables, sys.executable, "-I", str(PROGRAMS / f"{name}.py"), *arguments]
    return _output(net.inside(words))
