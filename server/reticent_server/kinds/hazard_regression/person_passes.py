# SPDX-License-Identifier: Apache-2.0
"""What the steps of a partial likelihood share: the map of a place, its model and score, and where
a step leads."""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from reticent_server.domain.steps import Released
from reticent_server.fitting.beliefs import Stepped
from reticent_server.fitting.budget import Sizes
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.maps import on_lattice
from reticent_server.fitting.scale import MeanScore
from reticent_server.fitting.state import State, StepPlace
from reticent_server.fitting.whole_budget import LEAST_REACH
from reticent_server.kinds.hazard_regression.partial_score import (
    FarWeights,
    FollowUpColumns,
    PartialScore,
    PartialScoreMap,
)
from reticent_server.kinds.hazard_regression.public_persons import PersonsModel

_LARGEST_THETA = 2.0**20  # in standardised units: keeps a fit within the floats


@dataclass(frozen=True, slots=True, eq=False)
class PersonPasses:
    """Passes over persons. coding: of the slopes; far: what persons weigh, None: all the same."""

    coding: Coding
    columns: FollowUpColumns
    sizes: Sizes
    far: FarWeights | None = None

    @property
    def reach(self) -> float:
        """L of the roots before their lengths are known."""
        return LEAST_REACH * sqrt(self.sizes.size)

    @property
    def unit_rows(self) -> int:
        """m."""
        return self.sizes.unit_rows

    def map(
        self, place: StepPlace, *, curvature: bool = False, meat: bool = False
    ) -> PartialScoreMap:
        """A record's score at a place, with its root or for its meat."""
        known = score_of(place).known
        return PartialScoreMap(
            self.coding, self.columns, place.point, known, self.far, curvature=curvature, meat=meat
        )


def model_of(place: StepPlace) -> PersonsModel:
    """Raises TypeError for a place of other models."""
    if not isinstance(place.model, PersonsModel):
        raise TypeError("a place of persons has a model of persons")
    return place.model


def score_of(place: StepPlace) -> PartialScore:
    """What is expected of scores at the place."""
    return model_of(place).score_at(place.direction)


def scored(place: StepPlace) -> StepPlace:
    """The place with its score."""
    return replace(place, score=score_of(place))


def mean_of(released: Released, place: StepPlace) -> MeanScore:
    """The mean score (k,) of a released sum, with its noise."""
    count = place.state.count
    g, sd = released.values / count, released.sd / count
    return MeanScore(g, sd**2 * np.eye(len(g)))


def moved(place: StepPlace, step: Stepped) -> State:
    """The state after a step."""
    W, state = place.model.whitening.transform, place.state
    theta = np.clip(state.theta + W.T @ step.way, -_LARGEST_THETA, _LARGEST_THETA)
    theta = on_lattice(theta, len(theta))
    return replace(state, theta=theta, beliefs=step.beliefs, way=step.way)
