# SPDX-License-Identifier: Apache-2.0
"""The wheels, and empty environments that hold one of them with what it requires, and nothing of
this repository.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "programs"
# for one program: on a machine that is busy with ten others the demonstration takes 300
SECONDS = 900
PASSED_ON = ("LANG", "TZ", "SSL_CERT_FILE")
"""What a program in an environment learns of ours: nothing by which it could find this
repository.
"""


def build_wheels(place: Path) -> dict[str, Path]:
    """Both wheels by the name of the distribution, built once, each in an environment of its
    own.
    """
    sources = [str(ROOT / name) for name in ("client", "server")]
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    subprocess.run([*command, str(place), *sources], check=True, timeout=SECONDS)
    return {path.name.split("-")[0].replace("_", "-"): path for path in place.glob("*.whl")}


@dataclass(frozen=True, slots=True)
class Environment:
    """python: of the environment. home: an empty directory, in which programs run."""

    python: Path
    home: Path

    @property
    def variables(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        path = f"{self.python.parent}{os.pathsep}/usr/bin{os.pathsep}/bin"
        return kept | {"PATH": path, "HOME": str(self.home), "TMPDIR": str(self.home)}

    def run(self, words: Sequence[str], **given: str) -> str:
        """What a command of the environment prints; its errors are shown."""
        done = subprocess.run(
            words,
            cwd=self.home,
            env=self.variables | given,
            check=True,
            timeout=SECONDS,
            stdout=subprocess.PIPE,
            text=True,
        )
        return done.stdout

    def program(self, name: str, *arguments: str, **given: str) -> str:
        """What a file of the folder `programs` prints, run by the environment's Python alone."""
        path = str(PROGRAMS / f"{name}.py")
        return self.run([str(self.python), "-I", path, *arguments], **given)


def environment(place: Path, wheels: Mapping[str, Path], name: str, extra: str = "") -> Environment:
    """A new environment with one distribution and an extra of it, whose requirements do not
    contradict each other.

    The versions are those of constraints.txt, as in the image.
    """
    folder = place / f"{name}-{extra or 'alone'}"
    python = folder / "venv/bin/python"
    home = folder / "home"
    home.mkdir(parents=True)
    subprocess.run(
        [sys.executable, "-m", "venv", str(folder / "venv")], check=True, timeout=SECONDS
    )
    wanted = f"{wheels[name]}[{extra}]" if extra else str(wheels[name])
    options = ["--quiet", "--disable-pip-version-check", "--no-compile", "--constraint"]
    found = ["--find-links", str(wheels[name].parent)]
    pip = [str(python), "-m", "pip"]
    install = [*pip, "install", *options, str(ROOT / "constraints.txt"), *found, wanted]
    subprocess.run(install, check=True, cwd=home, timeout=2 * SECONDS)
    subprocess.run([*pip, "check"], check=True, cwd=home, timeout=SECONDS)
    return Environment(python, home)
