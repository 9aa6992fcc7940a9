# SPDX-License-Identifier: Apache-2.0
"""Commands and requests of the walks: what they print, or the end of the run with what went
wrong.
"""

import json
import subprocess
import sys
import time
from collections.abc import Sequence

from tools.packages.boxes import Network
from tools.packages.environments import PROGRAMS

SECONDS = 900  # for one command, on a machine that is busy
READY_SECONDS = 600  # for a server to become ready, on a machine that is busy
ASK_SECONDS = 0.3  # between two questions whether it is


def output(words: Sequence[str]) -> str:
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        raise SystemExit(f"{words[-3:]} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def wait_for(words: Sequence[str], process: "subprocess.Popen[bytes]") -> None:
    """Until a command succeeds, as long as a process lives."""
    ends = time.monotonic() + READY_SECONDS
    while subprocess.run(words, check=False, capture_output=True).returncode:
        if time.monotonic() > ends or process.poll() is not None:
            raise SystemExit(f"{words[-3:]} did not succeed")
        time.sleep(ASK_SECONDS)


def asked(
    net: Network,
    url: str,
    key: str,
    released: str | None = None,
    given: dict[str, str] | None = None,
) -> str:
    arguments = [url] if released is None else [url, f"released={released}"]
    variables = {"RETICENT_KEY": key, **(given or {})}
    return str(json.loads(output(program_words(net, "asked", arguments, variables)))["id"])


def program_words(
    net: Network, name: str, arguments: Sequence[str], given: dict[str, str]
) -> list[str]:
    """The command that runs a file of the folder `programs` in a network."""
    variables = [f"{key}={value}" for key, value in given.items()]
    words = ["env", *variables, sys.executable, "-I", str(PROGRAMS / f"{name}.py"), *arguments]
    return net.inside(words)
