# SPDX-License-Identifier: Apache-2.0
"""One table: what a part of a ColumnStep costs, and how it is released."""

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from reticent_server.domain.columns import (
    AsymptoticFit,
    AsymptoticLocationScale,
    ColumnPart,
    ConvexFit,
    DepthDraw,
    MEstimate,
    SmoothMedian,
    StableBin,
    SubsampleAggregate,
)
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.private import Private
from reticent_server.domain.steps import FloatArray, Released
from reticent_server.mechanisms import (
    asymptotic_fit,
    asymptotic_location_scale,
    convex_fit,
    depth_draw,
    m_estimate,
    smooth_median,
    stable_bin,
    subsample_aggregate,
)

Each = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]

_MECHANISMS: Mapping[type[ColumnPart], ModuleType] = {
    SmoothMedian: smooth_median,
    StableBin: stable_bin,
    MEstimate: m_estimate,
    DepthDraw: depth_draw,
    ConvexFit: convex_fit,
    AsymptoticFit: asymptotic_fit,
    AsymptoticLocationScale: asymptotic_location_scale,
    SubsampleAggregate: subsample_aggregate,
}


def cost(part: ColumnPart) -> PrivacyCost:
    """What the part costs, under either rule of an account."""
    price: PrivacyCost = _MECHANISMS[type(part)].cost(part)
    return price


def release(part: ColumnPart, values: Private[FloatArray], each: Each = map) -> Released:
    """The part's released value, from the private columns (k, n) that its step gathered.

    each: does a function on every item of a list, as `map`, where there are more threads than one.
    """
    if isinstance(part, SubsampleAggregate):
        return subsample_aggregate.release(part, values, each)
    released: Released = _MECHANISMS[type(part)].release(part, values)
    return released
