# SPDX-License-Identifier: Apache-2.0
"""The image of deploy/Dockerfile, built by Debian's buildah without an engine, on a base of
Debian's own packages.

The base takes a minute and is kept between runs, in the user's folder for caches; so is nothing
else.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.packages.environments import ROOT

RELEASE = "bookworm"
PACKAGES = ("python3", "python3-venv", "ca-certificates")
"""What the image `python:3.11-slim-bookworm` has that a bare Debian does not."""

BASE = "localhost/reticent-base"
IMAGE = "localhost/reticent"
SECONDS = 1_200  # for a base or an image on a slow network
PROGRAMS = ("buildah", "debootstrap", "unshare", "nsenter", "setpriv")


def missing() -> str | None:
    """Why no image can be built here, else None."""
    lacking = [name for name in PROGRAMS if shutil.which(name) is None]
    if os.geteuid() != 0:
        return "only root can build it without an engine"
    if lacking:
        return f"{', '.join(lacking)} not installed (Debian: apt-get install buildah debootstrap)"
    private = ["unshare", "--mount", "--net", "true"]
    if subprocess.run(private, check=False, capture_output=True).returncode:
        return "this machine allows no namespaces"
    return None


@dataclass(frozen=True, slots=True)
class Image:
    """root: its files. entrypoint, command, environment, health: as the Dockerfile says. user:
    uid:gid.
    """

    root: Path
    user: str
    directory: str
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    environment: dict[str, str]
    health: tuple[str, ...]
    volumes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Buildah:
    """Its images are in a folder of their own, removed with it."""

    store: Path

    def run(self, *words: str) -> str:
        places = ["--root", str(self.store / "images"), "--runroot", str(self.store / "run")]
        command = ["buildah", *places, *words]
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        return done.stdout.strip()

    def end(self) -> None:
        """Takes back what buildah mounts its own folder on."""
        folder = self.store / "images/overlay"
        while folder.is_mount():
            subprocess.run(["umount", "--recursive", str(folder)], check=True)


def base(say: Callable[[str], None]) -> Path:
    """The archive of the base, made once: a machine that has it needs no mirror of Debian's."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    kept = caches / "reticent" / f"base-{RELEASE}.tar"
    if kept.is_file():
        return kept
    say(f"debootstrap {RELEASE}: about a minute, once")
    kept.parent.mkdir(parents=True, exist_ok=True)
    folder = kept.with_suffix(".new")
    shutil.rmtree(folder, ignore_errors=True)
    options = ["--variant=minbase", f"--include={','.join(PACKAGES)}"]
    command = ["debootstrap", *options, RELEASE, str(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        raise SystemExit(f"debootstrap failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    (folder / "usr/bin/python").symlink_to("python3")  # as in the images of Python
    archive = folder.with_suffix(".part")
    left_out = ["--exclude=./proc/*", "--exclude=./sys/*", "--exclude=./var/cache/apt/archives/*"]
    subprocess.run(
        ["tar", "--create", "--file", str(archive), "--directory", str(folder), *left_out, "."],
        check=True,
    )
    archive.replace(kept)
    shutil.rmtree(folder)
    return kept


@contextmanager
def built(place: Path, archive: Path) -> Iterator[Image]:
    """The image with its files in reach, as Dockerfile, .dockerignore and constraints.txt make
    it.
    """
    buildah = Buildah(place / "buildah")
    container = buildah.run("from", "scratch")
    buildah.run("add", container, str(archive), "/")
    buildah.run("commit", "--rm", container, BASE)
    file = ["--file", str(ROOT / "deploy/Dockerfile"), "--build-arg", f"PYTHON_IMAGE={BASE}"]
    isolated = ["--isolation", "chroot", "--network", "host", "--format", "docker"]
    mounted = [f"--volume={each}:{each}:ro" for each in _index(place)]
    mounted += [f"--volume={place / 'pip.conf'}:/etc/pip.conf:ro"]
    buildah.run("bud", "--pull-never", *isolated, *mounted, *file, "--tag", IMAGE, str(ROOT))
    container = buildah.run("from", "--pull-never", IMAGE)
    root = Path(buildah.run("mount", container))
    try:
        inspected = json.loads(buildah.run("inspect", "--type", "image", IMAGE))
        yield _image(root, inspected["Docker"]["config"])
    finally:
        buildah.run("umount", container)
        buildah.run("rm", container)
        buildah.run("rmi", "--all", "--force")
        buildah.end()


def _index(place: Path) -> list[str]:
    """Where this machine's pip looks for packages, for pip in the image: writes pip.conf; the local
    files that it names.
    """
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    found: dict[str, str] = {}
    for line in listed.stdout.splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.rpartition(".")
        if section in ("global", "install", ":env:") and name != "constraint":
            found[name] = value.strip("'\"")
    lines = ["[global]", *(f"{name} = {value}" for name, value in found.items())]
    (place / "pip.conf").write_text("\n".join(lines) + "\n", "utf-8")
    local = {path for name, value in found.items() for path in _local(name, value)}
    return sorted(str(path) for path in local if path.exists())


def _local(name: str, value: str) -> Iterator[Path]:
    """Local paths of an option of pip; of an index what is beside it, too, where its pages' links
    lead.
    """
    for path in re.findall(r"(?:file://)?(/[^\s'\"]+)", value):
        if not path.startswith("//"):
            yield Path(path).parent if name.endswith("index-url") else Path(path)


def _image(root: Path, config: dict[str, object]) -> Image:
    def words(name: str, given: object = None) -> tuple[str, ...]:
        listed = config.get(name) if given is None else given
        return tuple(map(str, listed)) if isinstance(listed, Sequence) else ()

    health = config["Healthcheck"]
    volumes = config.get("Volumes") or {}
    assert isinstance(health, dict)
    assert isinstance(volumes, dict)
    kind, *command = health["Test"]
    assert kind == "CMD"
    return Image(
        root,
        user_of(root, str(config["User"])),
        str(config["WorkingDir"]),
        words("Entrypoint"),
        words("Cmd"),
        dict(each.split("=", 1) for each in words("Env")),
        tuple(command),
        tuple(volumes),
    )


def user_of(root: Path, name: str) -> str:
    """uid:gid of a user that is named in a root, or written as numbers already."""
    if re.fullmatch(r"\d+:\d+", name):
        return name
    for line in (root / "etc/passwd").read_text("utf-8").splitlines():
        each, _, uid, gid, *_ = line.split(":")
        if name in (each, uid):
            return f"{uid}:{gid}"
    raise SystemExit(f"no user {name} in {root}")
