# SPDX-License-Identifier: Apache-2.0
"""Debian's PostgreSQL and Caddy in place of the images that the compose file names: what those
images bring along.
"""

import os
import pwd
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.packages.boxes import Mount
from tools.packages.images import Image, user_of

ENTRYPOINT = Path(__file__).parent / "postgres-entrypoint.sh"
_ETC = ("passwd", "group", "nsswitch.conf", "ld.so.cache", "localtime")


@dataclass(frozen=True, slots=True)
class StandIn:
    """image: as of one that was built. mounts: what its files are made of."""

    image: Image
    mounts: tuple[Mount, ...]


def postgres(root: Path) -> StandIn | None:
    """Else None: Debian's packages are not installed."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not programs:
        return None
    path = f"{programs[-1].parent}:/usr/bin:/bin"
    environment = {"PATH": path, "LANG": "C.UTF-8"}
    made = _image(root, "0:0", ("/entrypoint.sh",), ("postgres",), environment)
    owner = pwd.getpwnam("postgres")
    data = root / "var/lib/postgresql/data"
    data.mkdir(parents=True)
    os.chown(data, owner.pw_uid, owner.pw_gid)
    return StandIn(made, (*_usr(), Mount(ENTRYPOINT, "/entrypoint.sh")))


def caddy(root: Path) -> StandIn | None:
    if shutil.which("caddy") is None:
        return None
    command = ("caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile")
    places = {"XDG_CONFIG_HOME": "/config", "XDG_DATA_HOME": "/data"}
    made = _image(root, "0:0", (), command, {"PATH": "/usr/bin:/bin", **places})
    return StandIn(made, _usr())


BY_IMAGE: dict[str, Callable[[Path], StandIn | None]] = {"postgres": postgres, "caddy": caddy}
"""By the name of the image, without its version."""


def _usr() -> tuple[Mount, ...]:
    return (Mount(Path("/usr"), "/usr"),)


def _image(
    root: Path,
    user: str,
    entrypoint: tuple[str, ...],
    command: tuple[str, ...],
    environment: dict[str, str],
) -> Image:
    """A root with this machine's programs, and none of its other files."""
    for name in ("etc", "run", "tmp", "usr", "var"):
        (root / name).mkdir(parents=True)
    for path in Path("/").iterdir():
        if path.is_symlink() and str(path.readlink()).lstrip("/").startswith("usr/"):
            (root / path.name).symlink_to(path.readlink())
    (root / "var/run").symlink_to("../run")
    for name in _ETC:
        if (Path("/etc") / name).is_file():
            shutil.copy(Path("/etc") / name, root / "etc" / name)
    user = user_of(root, user)
    return Image(root, user, "/", entrypoint, command, environment, (), ())
