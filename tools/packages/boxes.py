# SPDX-License-Identifier: Apache-2.0
"""A process as a container would run it: its own root, mounts and network, a user without
capabilities.

Made of util-linux (unshare, nsenter, setpriv) and chroot; needs root's rights, and neither an
engine nor cgroups. What is not done: limits of memory, processors and processes, and process
numbers of its own.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_LOOPBACK_UP = """
import fcntl, signal, socket, struct
SIOCSIFFLAGS, IFF_UP = 0x8914, 1  # <linux/sockios.h>, <linux/if.h>
with socket.socket() as any:
    fcntl.ioctl(any, SIOCSIFFLAGS, struct.pack("16sh", b"lo", IFF_UP))
print("up", flush=True)
signal.pause()
"""


@contextmanager
def network() -> Iterator["Network"]:
    """A network of its own, in which there is nothing but a loopback interface."""
    command = ["unshare", "--net", sys.executable, "-I", "-c", _LOOPBACK_UP]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "up\n"
            yield Network(holder.pid)
        finally:
            holder.kill()


@dataclass(frozen=True, slots=True)
class Network:
    """process: one that lives in it."""

    process: int

    def inside(self, words: Sequence[str]) -> list[str]:
        """The command that runs another in this network, as the same process."""
        return ["nsenter", f"--net=/proc/{self.process}/ns/net", *words]


@dataclass(frozen=True, slots=True)
class Mount:
    """source: a file or folder of this machine; None: memory. target: its path in the box. options:
    of mount.
    """

    source: Path | None
    target: str
    writable: bool = False
    options: str = ""


@dataclass(frozen=True, slots=True)
class Box:
    """What a process sees. root: a folder, read-only. user: uid:gid. capabilities: kept, of none.

    Folders and files that are mounted upon are made in `root` where they are missing.
    """

    root: Path
    network: Network
    user: str
    directory: str = "/"
    environment: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    capabilities: tuple[str, ...] = ()

    def command(self, words: Sequence[str]) -> list[str]:
        """Runs `words` as one process: a signal to it reaches them."""
        for mount in self.mounts:
            _make_place(self.root, mount)
        script = "\n".join([*self._mounting(), f"exec {shlex.join(self._entering(words))}"])
        private = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", script]
        return self.network.inside(private)

    def _mounting(self) -> Iterator[str]:
        root = shlex.quote(str(self.root))
        yield f"mount --bind {root} {root}"
        for name in ("proc", "dev"):
            yield f"mkdir -p {root}/{name}; mount --rbind /{name} {root}/{name}"
        for mount in self.mounts:
            place = shlex.quote(str(resolved(self.root, mount.target)))
            if mount.source is None:
                yield f"mount -t tmpfs -o {mount.options or 'mode=1777'} tmpfs {place}"
                continue
            yield f"mount --bind {shlex.quote(str(mount.source))} {place}"
            if not mount.writable:
                yield f"mount -o remount,bind,ro {place}"
        yield f"mount -o remount,bind,ro {root}"

    def _entering(self, words: Sequence[str]) -> list[str]:
        user, _, group = self.user.partition(":")
        kept = "".join(f",+{name.lower()}" for name in self.capabilities)
        setpriv = ["setpriv", "--reuid", user, "--regid", group, "--clear-groups"]
        rights = ["--no-new-privs", "--inh-caps", "-all", "--bounding-set", f"-all{kept}"]
        given = [f"{name}={value}" for name, value in self.environment.items()]
        into = ["chroot", str(self.root), *setpriv, *rights]
        return [*into, "env", "--ignore-environment", f"--chdir={self.directory}", *given, *words]


def resolved(root: Path, target: str) -> Path:
    """The place of a path of the box on this machine, through the links of its root, never outside
    it.
    """
    place = root
    for part in Path(target).parts[1:]:
        following = place / part
        if following.is_symlink():
            link = following.readlink()
            start = "/" if link.is_absolute() else f"/{place.relative_to(root)}"
            following = resolved(root, os.path.normpath(f"{start}/{link}"))
        place = following
    return place


def _make_place(root: Path, mount: Mount) -> None:
    place = resolved(root, mount.target)
    if mount.source is None or mount.source.is_dir():
        place.mkdir(parents=True, exist_ok=True)
    elif not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
