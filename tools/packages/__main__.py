# SPDX-License-Identifier: Apache-2.0
"""What is delivered, tried as it is delivered: `python -m tools.packages [wheels] [image]`; `make
packages` does both.

`wheels`: each distribution in an empty environment, alone and with each extra. `image`:
deploy/Dockerfile on a base of Debian's, what it runs, and all services of docker-compose.yml; as
root, where Debian's buildah and debootstrap are.
"""

import sys
import tempfile
import time
from pathlib import Path

from tools.packages import containers, wheels

PARTS = {"wheels": wheels.run, "image": containers.run}


def main(names: list[str]) -> int:
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - began:5.0f} s  {line}", flush=True)

    for name in names or PARTS:
        with tempfile.TemporaryDirectory(prefix="reticent-packages-") as folder:
            Path(folder).chmod(0o755)  # users of containers go through it
            PARTS[name](Path(folder), say)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
