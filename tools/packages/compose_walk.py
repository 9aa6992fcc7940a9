# SPDX-License-Identifier: Apache-2.0
"""What docs/how-to/deploy.md does with the compose file, without an engine."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.packages import people
from tools.packages.asking import asked, output, program_words, wait_for
from tools.packages.boxes import Network, network
from tools.packages.compose import services
from tools.packages.deployment import Deployment, ServiceOfImage
from tools.packages.environments import PROGRAMS, ROOT
from tools.packages.images import Image
from tools.packages.stand_ins import BY_IMAGE

ANALYSTS, CONSOLE = "https://localhost", "https://localhost:8443"  # RETICENT_HOST's default
SCHEDULER = "tls://scheduler:8786"  # as docs/how-to/deploy.md says


def compose(image: Image, place: Path, say: Callable[[str], None]) -> None:
    """load → fit → restart → verify, by all services of the file, the last time with Dask's."""
    project = prepare(place)
    with network() as net:
        site = ComposeSite(image, project, place, net)
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
            "compose: started again with a cluster, the release read again, a fit, the ledger "
            "verified"
        )


@dataclass(frozen=True, slots=True)
class ComposeSite:
    """image: of this project. project: the folder of the compose file. place: for roots, volumes
    and logs.
    """

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
                placed[name] = ServiceOfImage(service, self.image)
            elif kind in BY_IMAGE:
                root = self.place / "roots" / name
                shutil.rmtree(root, ignore_errors=True)
                root.mkdir(parents=True)
                made = BY_IMAGE[kind](root)
                if made is not None:
                    placed[name] = ServiceOfImage(service, made.image, made.mounts)
        for name in ("db", "proxy"):
            if name not in placed:
                print(
                    f"*** {name} OF THE COMPOSE FILE WAS NOT TRIED: its program is not installed "
                    "***"
                )
        return Deployment(self.network, placed, hosts, self.place) if "db" in placed else None

    def asked(self, running: Deployment, key: str, released: str | None = None) -> str:
        """A fit, or what was released before, as an analyst gets it; its id."""
        if "proxy" not in running.running:
            return asked(self.network, "http://server:8000", key, released)
        authority = self.place / "volumes/certificates/caddy/pki/authorities/local/root.crt"
        trusted = {"SSL_CERT_FILE": str(authority)}
        pages = [f"{ANALYSTS}/readyz", f"{CONSOLE}/console/sign-in"]
        wait_for(program_words(self.network, "reached", pages, trusted), running.running["proxy"])
        return asked(self.network, ANALYSTS, key, released, trusted)


def prepare(place: Path) -> Path:
    """A copy of the compose file with the folder `deploy`, its secrets, a table and certificates
    for a cluster.
    """
    project = place / "project"
    (place / "volumes").mkdir(parents=True)
    shutil.copytree(ROOT / "deploy", project / "deploy", ignore=_made)
    shutil.copy(ROOT / "docker-compose.yml", project)
    deploy = project / "deploy"
    owner = output(["id", "-u", "postgres"]).strip()
    given = os.environ | {"POSTGRES_UID": owner}
    subprocess.run([str(deploy / "make-secrets.sh")], env=given, check=True)
    user = (deploy / "tables").stat().st_uid
    people.write(deploy / "tables")
    people.write(place)
    output([sys.executable, "-I", str(PROGRAMS / "parquet.py"), str(place)])
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
    output(["openssl", "req", *made, "-keyout", str(key), "-out", str(certificate)])
    shutil.copy(key, folder / "client-key.pem")
    for name in ("client.pem", "ca.pem"):
        shutil.copy(certificate, folder / name)
