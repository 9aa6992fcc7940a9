# SPDX-License-Identifier: Apache-2.0
"""What noise in the scale does to a solution whose scores are centred under the scale's law."""

from math import log
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.steps import Released
from reticent_server.fitting.curvature import LocalRows
from reticent_server.fitting.huber import MedianResidual
from reticent_server.fitting.newton import PREDICTOR_SPREAD
from reticent_server.fitting.scale import MeasuredScale
from reticent_server.kinds.glm.families.base import FittedFamily, Start
from reticent_server.kinds.glm.families.gamma import GAMMA
from reticent_server.kinds.glm.families.poisson import POISSON
from support.seeds import seeded

N, SD = 400_000, 0.02
THETA = np.array([0.6, 0.25])
SCALES = {"gamma": 0.7, "poisson": 1.5}


def fitted(name: str) -> FittedFamily:
    family = {"gamma": GAMMA, "poisson": POISSON}[name]
    return FittedFamily(family, family.tuning, Start(0.6, SCALES[name], 1e3), intercept=True)


def drawn(name: str) -> tuple[Any, Any]:
    """Rows (N, 2) and responses of the law at its scale."""
    rng, s = seeded(5), SCALES[name]
    X = np.column_stack([np.ones(N), rng.normal(size=N)])
    mu = np.exp(X @ THETA)
    if name == "gamma":
        return X, rng.gamma(1 / s**2, s**2 * mu)
    return X, s**2 * rng.poisson(mu / s**2)


def measured(family: FittedFamily, residuals: Any = None) -> MeasuredScale:
    budget: Any = None  # nothing here asks what is spent
    coding: Any = None
    residuals = residuals or family.residuals
    return MeasuredScale(budget, 1, coding, residuals, family)


def rows_of(X: Any) -> Any:
    """A public model whose rows are these, each of weight 1."""

    def local(score: Any, theta: Any) -> LocalRows:
        eta, one = X @ theta, np.ones(len(X))
        return LocalRows(X, eta, score.leverage(eta), one)

    return SimpleNamespace(local=local)


@pytest.mark.parametrize("name", ["gamma", "poisson"])
def test_an_error_of_the_scale_moves_the_mean_score_by_as_much_as_is_said(name: str) -> None:
    family, (X, y) = fitted(name), drawn(name)
    score = family.score(SCALES[name])
    b = measured(family).unsure(rows_of(X[:4000]), score, THETA, SD)
    change = measured(family).residuals.error(score, SD)
    eta = X @ THETA
    ends = []
    for h in (change, -change):
        other = family.score(SCALES[name] * float(np.exp(h)))
        q = other.evaluate(y, eta)
        ends.append(X.T @ (score.leverage(eta) * q) / N)
    drawn_change = (ends[0] - ends[1]) / 2
    assert np.linalg.norm(b - drawn_change) < 0.08 * np.linalg.norm(drawn_change)


def test_in_a_plan_where_all_rows_have_one_predictor_jumps_of_a_law_are_averaged() -> None:
    family, (X, _) = fitted("poisson"), drawn("poisson")
    found = [
        measured(family).unsure(
            rows_of(X[:1024]), family.score(1.5), np.array([eta, 0.0]), SD, PREDICTOR_SPREAD
        )[0]
        for eta in np.arange(0.4, 0.9, 0.05)
    ]
    assert 0 < max(found) < 1.5 * min(found)


@pytest.mark.parametrize("name", ["gamma", "poisson"])
def test_noise_of_the_measurement_moves_the_scale_by_as_much_as_is_said(name: str) -> None:
    family, (X, y) = fitted(name), drawn(name)
    score, residuals = family.score(SCALES[name]), measured(family).residuals
    total = float(np.sum(residuals.contribution(score, y, X @ THETA)))
    up, down = (
        residuals.scale(score, Released(np.array([total + sign * SD * N]), 0.0), N)
        for sign in (1, -1)
    )
    assert residuals.error(score, SD) == pytest.approx(log(up / down) / 2, rel=0.1)
    assert residuals.error(score, 0.0) == 0


def test_symmetric_scores_do_not_lean() -> None:
    family = fitted("gamma")
    found = measured(family, MedianResidual()).unsure(None, family.score(0.7), THETA, SD)  # type: ignore[arg-type]
    assert found.tolist() == [0, 0]
