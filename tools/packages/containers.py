# SPDX-License-Identifier: Apache-2.0
"""The image, what it runs by itself, and the deployment of docker-compose.yml, where Debian's tools
are.
"""

from collections.abc import Callable
from pathlib import Path

from tools.packages.compose_walk import compose
from tools.packages.image_walk import alone
from tools.packages.images import base, built, missing


def run(place: Path, say: Callable[[str], None]) -> None:
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
