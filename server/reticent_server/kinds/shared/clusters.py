# SPDX-License-Identifier: Apache-2.0
"""`cluster`: standard errors of a regression between the levels of a public column
(fitting.cluster_scores)."""

from collections.abc import Callable
from typing import Any

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.cluster_plan import ClusterPlan
from reticent_server.fitting.cluster_scores import SHARE, ClusterParts, LevelClusters
from reticent_server.fitting.fit_plan import FitPlan
from reticent_server.fitting.special_columns import reading
from reticent_server.fitting.trust.thresholds import LEAST_CLUSTERS
from reticent_server.kinds.shared.columns import declared
from reticent_server.kinds.shared.tables import level_axis

MOST_CLUSTERS = 512  # what is taken off a variance grows with their number
_PERSONS = (
    "cluster is for tables with one row a person. With several rows a person errors are by person already: leave "
    "cluster out, or make one row of each person."
)
_FEW = (
    "cluster needs a column with {least:.0f} to {most} declared levels; {name} has {size}. Of fewer put the column "
    "in the formula as a factor."
)


def plan_clustered(
    facts: DatasetFacts,
    design: Design,
    name: str,
    rho: int,
    fit: Callable[[Design, int], FitPlan[Any]],
) -> ClusterPlan[Any]:
    """The fit that `fit` plans of a design at an amount, with errors by cluster, at `rho`
    (RHO_UNITS) together. Raises InvalidQuery."""
    if facts.schema.unit.many_rows:
        raise InvalidQuery(_PERSONS)
    column, clusters = declared(facts, name), clusters_of(facts, name)
    part = max(1, rho // SHARE)
    plan = fit(reading(design, column), rho - part)
    return ClusterPlan(plan, ClusterParts(plan.coding.size, clusters, part))


def clusters_of(facts: DatasetFacts, name: str) -> LevelClusters:
    """The declared levels of a column. Raises InvalidQuery."""
    column = declared(facts, name)
    if not column.kind.is_whole:
        raise InvalidQuery("cluster must be a categorical, boolean or integer column.")
    axis = level_axis(column)
    if not LEAST_CLUSTERS.value <= axis.size <= MOST_CLUSTERS:
        raise InvalidQuery(
            _FEW.format(least=LEAST_CLUSTERS.value, most=MOST_CLUSTERS, name=name, size=axis.size)
        )
    return LevelClusters(name, tuple(axis.lower + k for k in range(axis.size)))
