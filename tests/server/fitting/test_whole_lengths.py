# SPDX-License-Identifier: Apache-2.0
"""The lengths that a cut is chosen by are those of the scores that are cut."""

from typing import Any

import numpy as np
import pytest

from reticent_server.fitting.maps import FitState, ScoreMap
from reticent_server.fitting.row_tail import LengthGrid
from reticent_server.fitting.whole_scores import UNBOUNDED, WholeLengthsMap
from support.fits.glm import glm_table, planned, slopes
from support.fits.regressions import HUGE_RHO, whole
from support.seeds import seeded

N = 400


@pytest.mark.parametrize("family", ["binomial", "poisson", "gamma"])
def test_a_score_and_its_root_are_as_long_as_they_are_counted(family: str) -> None:
    table: Any = glm_table(family, N, seeded(6), p=2)
    plan = planned(table, slopes(2), family, HUGE_RHO, target="likelihood")
    score = plan.model.law.likelihood(0.9, plan.ground.response)
    theta = plan.ground.start + np.array([0.2, 0.5, -0.3])
    point = FitState(theta, np.eye(3), UNBOUNDED, score)
    block, grid = whole(table), LengthGrid(0.3)
    scores, roots = ScoreMap(plan.ground.coding, point, np.zeros(3), curvature=True)(block)
    counted = WholeLengthsMap(plan.ground.coding, point, grid, grid)(block)
    for vectors, codes in zip((scores, roots), counted, strict=True):
        lengths = np.linalg.norm(vectors.vectors * vectors.weights, axis=0)
        np.testing.assert_array_equal(codes, grid.codes(lengths))
