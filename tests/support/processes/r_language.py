# SPDX-License-Identifier: Apache-2.0
"""R with the packages that the R package's check needs.

Where they are missing, that check is skipped, and the end of the run says so in words that cannot
be overlooked (`pytest_terminal_summary`, for tests/conftest.py).
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

PACKAGES = ("generics", "httr2", "knitr", "markdown", "testthat")
DEBIAN = "r-base-core " + " ".join(f"r-cran-{name}" for name in PACKAGES)
SECONDS = 3600.0
"""For one command of R, after which it hangs: its check takes about 20 s of processor time, the
rest is for a busy machine.
"""


@cache
def installed() -> bool:
    """Whether R and the packages are there."""
    if shutil.which("Rscript") is None:
        return False
    wanted = ", ".join(f'"{name}"' for name in PACKAGES)
    test = f"stopifnot(all(vapply(c({wanted}), requireNamespace, NA, quietly = TRUE)))"
    done = subprocess.run(["Rscript", "-e", test], capture_output=True, check=False)
    return done.returncode == 0


def need() -> None:
    """Skips the test where R is missing."""
    if not installed():
        pytest.skip("no R")


def command(*arguments: str, folder: Path, variables: Mapping[str, str]) -> tuple[int, str]:
    """The status and all that an R command printed."""
    done = subprocess.run(
        ["R", "CMD", *arguments],
        cwd=folder,
        env=os.environ | dict(variables),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not installed():
        terminalreporter.section("The R package was NOT tested", sep="!", red=True, bold=True)
        terminalreporter.line(
            "R or a package that its check needs was not found, so R's own check was skipped. "
            f"Install them (on Debian: apt-get install {DEBIAN}) before trusting this run."
        )
