# SPDX-License-Identifier: Apache-2.0
"""Waiting for what another thread or process does, on a machine that may be busy with other
things.
"""

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 120.0
"""Seconds until a test is given up: a hundred times what anything here takes on a machine with
nothing else to do.
"""


def until(true: Callable[[], Any], every: float = 0.01) -> None:
    """Returns when `true` holds; asked again after `every` seconds. AssertionError: not within
    PATIENCE.
    """
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(every)
