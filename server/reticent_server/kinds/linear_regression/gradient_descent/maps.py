# SPDX-License-Identifier: Apache-2.0
"""What one record contributes at the end of a descent: of the record and public values only."""

from dataclasses import dataclass

from reticent_server.domain.steps import Block, Contribution
from reticent_server.fitting.maps import ScoreMap


@dataclass(frozen=True, slots=True, eq=False)
class CurvatureMap:
    """Gives (root, score): what `scores`, with curvature and meat, gives but for the gradient."""

    scores: ScoreMap

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        _, *rest = self.scores(block)
        return tuple(rest)
