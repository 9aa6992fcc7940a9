# SPDX-License-Identifier: Apache-2.0
"""`cluster`: standard errors of a regression between the levels of public columns
(fitting.cluster_scores)."""

from collections.abc import Callable
from typing import Any

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.cluster_scores import (
    MOST_COMBINED,
    SHARE,
    ClusterParts,
    LevelClusters,
)
from reticent_server.fitting.fit_plan import FitPlan
from reticent_server.fitting.special_columns import reading
from reticent_server.fitting.trust.thresholds import LEAST_CLUSTERS
from reticent_server.kinds.shared.cluster_plan import ClusterPlan
from reticent_server.kinds.shared.columns import declared
from reticent_server.kinds.shared.tables import level_axis

MOST_CLUSTERS = 512  # what is taken off a variance grows with their number
Columns = str | tuple[str, str]
_PERSONS = (
    "cluster is for tables with one row a person. With several rows a person errors are by person "
    "already: leave cluster out, or make one row of each person."
)
_FEW = (
    "cluster needs {least:.0f} to {most} declared levels; {name} has {size}. Of fewer put the "
    "column in the formula as a factor."
)
_STRATA_ALONE = (
    "strata is for sampling with clusters: name the primary sampling units with cluster. Of "
    "records that are drawn one by one in each stratum leave strata out, which makes errors no "
    "smaller."
)
_TWO = "cluster names two different columns, and strata is for one."


def plan_clustered(
    facts: DatasetFacts,
    design: Design,
    names: Columns | None,
    strata: str | None,
    rho: int,
    fit: Callable[[Design, int], FitPlan[Any]],
) -> ClusterPlan[Any]:
    """The fit that `fit` plans of a design at an amount, with errors by cluster, at `rho`
    (RHO_UNITS) together. Raises InvalidQuery."""
    if names is None:
        raise InvalidQuery(_STRATA_ALONE)
    if facts.schema.unit.many_rows:
        raise InvalidQuery(_PERSONS)
    clusterings = clusterings_of(facts, names, strata)
    for name in dict.fromkeys(name for each in clusterings for name in each.columns):
        design = reading(design, declared(facts, name))
    part = max(1, rho // SHARE)
    plan = fit(design, rho - part)
    found = ClusterPlan(plan, ClusterParts(plan.ground.coding.size, clusterings, part))
    if len(clusterings) > 2 and found.taken_off[2][0] > MOST_COMBINED:
        return ClusterPlan(plan, ClusterParts(plan.ground.coding.size, clusterings[:2], part))
    return found


def clusterings_of(
    facts: DatasetFacts, names: Columns, strata: str | None
) -> tuple[LevelClusters, ...]:
    """One column's, in strata or not; or two columns' and, where they are not too many, their
    combinations'. Raises InvalidQuery."""
    if isinstance(names, str):
        columns = (names,) if strata is None else (strata, names)
        return (checked(clusters_of(facts, columns, stratified=strata is not None)),)
    if strata is not None or names[0] == names[1]:
        raise InvalidQuery(_TWO)
    each = tuple(checked(clusters_of(facts, (name,))) for name in names)
    both = clusters_of(facts, names)
    return (*each, both) if both.size <= MOST_CLUSTERS else each


def clusters_of(
    facts: DatasetFacts, names: tuple[str, ...], *, stratified: bool = False
) -> LevelClusters:
    """Combinations of the declared levels of columns. Raises InvalidQuery."""
    codes = tuple(_codes(facts, name) for name in names)
    return LevelClusters(names, codes, len(codes[0]) if stratified else None)


def _codes(facts: DatasetFacts, name: str) -> tuple[float, ...]:
    column = declared(facts, name)
    if not column.kind.is_whole:
        raise InvalidQuery("cluster must be a categorical, boolean or integer column.")
    axis = level_axis(column)
    if axis.size > MOST_CLUSTERS:
        raise _few(name, axis.size)
    return axis.stored


def checked(clusters: LevelClusters) -> LevelClusters:
    """Those of errors by cluster. Raises InvalidQuery."""
    if LEAST_CLUSTERS.value <= clusters.size <= MOST_CLUSTERS:
        return clusters
    raise _few(clusters.name, clusters.size)


def _few(name: str, size: int) -> InvalidQuery:
    least = LEAST_CLUSTERS.value
    return InvalidQuery(_FEW.format(least=least, most=MOST_CLUSTERS, name=name, size=size))
