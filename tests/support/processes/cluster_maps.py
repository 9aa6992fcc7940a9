# SPDX-License-Identifier: Apache-2.0
"""Maps that a cluster's worker processes can import, for tests."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reticent_server.domain.steps import Block


@dataclass(frozen=True)
class Moments:
    """Sums of y and x, their products, and a count of level 1."""

    def __call__(self, block: Block) -> Any:
        vectors = np.stack([block.columns["y"] / 10, block.columns["x"]])
        return vectors, vectors, np.where(block.columns["g"] == 1.0, 0.0, -1.0)


@dataclass(frozen=True)
class KillsItsWorker:
    """Another map, whose process is killed by the first worker that sees the record at `position`,
    but not the process `spared`, which may do a worker's blocks on a busy machine.
    """

    inner: Any
    position: int
    marker: Path
    spared: int = 0

    def __call__(self, block: Block) -> Any:
        sees = block.start <= self.position < block.start + block.rows
        if sees and os.getpid() != self.spared and not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.inner(block)


@dataclass(frozen=True)
class Fails:
    """Another map, which quotes a private cell of the record at `position`."""

    inner: Any
    position: int

    def __call__(self, block: Block) -> Any:
        if block.start <= self.position < block.start + block.rows:
            raise ValueError(f"secret {block.columns['y'][0]}")
        return self.inner(block)
