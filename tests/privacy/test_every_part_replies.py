# SPDX-License-Identifier: Apache-2.0
"""Every part of every mechanism, fed with whatever a table can hold, has a released value or no
reply.

An exception would be a release of status "failed", and would tell of the cell that raised it.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.columns import (
    AsymptoticFit,
    AsymptoticLocationScale,
    BlockMean,
    BlockModel,
    ConvexFit,
    DepthDraw,
    GeometricBins,
    Lattice,
    MEstimate,
    SmoothMedian,
    StableBin,
    SubsampleAggregate,
    UniformBins,
)
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, RHO_UNITS
from reticent_server.domain.grid import Grid
from reticent_server.domain.private import Private
from reticent_server.domain.steps import (
    CountSum,
    GramSum,
    PowerSum,
    QuantileTree,
    RunningCounts,
    Scaled,
    VectorSum,
)
from reticent_server.mechanisms import column_registry, registry
from support.seeds import seeded

E, D = 20 * EPSILON_UNITS, DELTA_UNITS // 100
LATTICE = Lattice(-100.0, 2.0**-10, 204_800)
WIDE = Lattice(-(2.0**39), 1.0, 2**40)
DIRECTIONS = ((1024, 0), (0, 1024), (724, 724), (-724, 724), (900, 488))
FIT = {"tuning": 1.345, "size": 2, "radius_squared": 2.5, "reach": 0.4, "slack": 0.05}
TESTED = {
    "floors": (0.4, 0.2),
    "epsilon_choice": E,
    "epsilon_test": E,
    "rho_release": RHO_UNITS,
    "delta": D,
}
NOISY = {"floor": 0.05, "contrasts": ((0.0, 1.0), (1.0, 0.5)), "offsets": (0.0, 0.1),
         "epsilon_fit": E, "delta_fit": D, "epsilon_test": E, "delta_test": D}  # fmt: skip
MEANS = (BlockMean(Grid(-5.0, 5.0), 0.0, RHO_UNITS, RHO_UNITS),) * 2
FEW = (BlockMean(Grid(-5.0, 5.0, integers=True), 0.0, RHO_UNITS, RHO_UNITS),) * 2
"""Few candidates: what follows the fits of blocks is the same for all models, and is tried with
many for one.
"""

COLUMN_PARTS = {
    "smooth median": (1, SmoothMedian(LATTICE, E, D)),
    "range": (1, StableBin("iqr", LATTICE, GeometricBins(1.0, 1.2, 90), E, D)),
    "median": (1, StableBin("median", LATTICE, UniformBins(40.0), E, D)),
    "m-estimate": (1, MEstimate(LATTICE, 2048, "uniform", -90.0, 90.0, (-90.0, 90.0), 4096, E)),
    "location and scale": (1, AsymptoticLocationScale(1.5, 0.1, 0.4, 0.1, E, D)),
} | {
    f"depth, {scale}": (2, DepthDraw((WIDE, WIDE), DIRECTIONS, scale, etas, E, E, E, D))
    for scale, etas in (("iqr", (4.0,)), ("mad", (8.0, 1e-3)), ("trimmed", (1e6, 1.0, 1e-6)))
} | {
    f"fit, {loss}": (5, ConvexFit(loss=loss, **FIT, **TESTED)) for loss in ("huber", "logistic")
} | {
    f"noisy fit, {loss}": (5, AsymptoticFit(loss=loss, **FIT, **NOISY)) for loss in ("huber",
        "logistic")
} | {
    f"blocks, {name}": (4, SubsampleAggregate(BlockModel(name, 2, 1.345, 100.0, True), 4, means))
    for name, means in (("huber", MEANS), ("location_scale", FEW), ("binomial", FEW),
        ("poisson", FEW), ("gamma", FEW))
}  # fmt: skip

SUM_PARTS = {
    "vectors": (3, VectorSum(3, 1.5, RHO_UNITS)),
    "Gram": (3, GramSum(3, 1.5, RHO_UNITS)),
    "counts": (None, CountSum(4, RHO_UNITS)),
    "powers": (None, PowerSum(((1.0,), (0.0, 1.0), (0.0, 0.0, 0.0, 0.0, 1.0)), RHO_UNITS)),
    "running counts": (None, RunningCounts(2, 3, RHO_UNITS)),
    "quantiles": (None, QuantileTree(Grid(-5.0, 5.0), (0.1, 0.5, 0.9), RHO_UNITS, 1, 8)),
}

EXTREMES = (
    np.nan,
    np.inf,
    -np.inf,
    1e308,
    -1e308,
    1e150,
    -1e150,
    5e-324,
    -5e-324,
    1e-300,
    1e17,
    -1e17,
    0.0,
    1.0,
)


def tables(rows: Any, seed: int, mixed: int = 8) -> Iterator[Any]:
    """(rows, n) tables: of one record and of some, all extreme, one extreme, constant, and
    mixed.
    """
    rng = seeded(seed)
    for n in (1, 2, 3, 8, 60):
        yield np.zeros((rows, n))
        for value in EXTREMES:
            yield np.full((rows, n), value)
            one = rng.normal(size=(rows, n))
            one[rng.integers(rows), rng.integers(n)] = value
            yield one
        for _ in range(mixed):
            usual = rng.normal(size=(rows, n))
            strange = rng.choice(EXTREMES, (rows, n))
            yield np.where(rng.random((rows, n)) < rng.choice([0.1, 0.5, 1.0]), strange, usual)


@pytest.mark.slow
@pytest.mark.sample(16)
@pytest.mark.parametrize("mixed", [2, pytest.param(25, marks=pytest.mark.audit)])
@pytest.mark.parametrize("name", COLUMN_PARTS)
def test_column_parts_reply_to_any_table(name: str, mixed: int) -> None:
    rows, part = COLUMN_PARTS[name]
    for table in tables(rows, 1, mixed):
        with np.errstate(all="ignore"):
            found = column_registry.release(part, Private(table))
        assert np.isfinite(found.values).all()
        assert len(found.values) > 0 or not found.passed


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", SUM_PARTS)
@pytest.mark.parametrize("unit_rows", [1, 5])
def test_sum_parts_reply_to_any_contributions(name: str, unit_rows: int) -> None:
    rows, part = SUM_PARTS[name]
    part = replace(part, unit_rows=unit_rows)
    for table in tables(rows or 1, 2):
        contributions = table if rows else table[0]
        given = [contributions]
        if rows:
            given.append(Scaled(contributions, np.resize(np.array(EXTREMES), table.shape[1])))
        for each in given:
            found = registry.release(part, Private(registry.encode(part, each)))
            assert np.isfinite(found.values).all()


STRANGE = ((0.0, 0.0), (np.nan, 1.0), (np.inf, 0.0), (1e300, -1e300), (1e-300, 5e-324), (0.0, 1.0))


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_a_fit_replies_for_any_contrasts_that_a_pilot_can_release(loss: str) -> None:
    """Contrasts and offsets are made of released values: of a scale that is almost 0, for one."""
    _, part = COLUMN_PARTS[f"noisy fit, {loss}"]
    for offset in (0.0, np.nan, np.inf, -1e308, 1e-320):
        strange = replace(part, contrasts=STRANGE, offsets=(offset,) * len(STRANGE))
        for table in tables(5, 3):
            if table.shape[1] in (2, 60):
                with np.errstate(all="ignore"):
                    found = column_registry.release(strange, Private(table))
                assert np.isfinite(found.values).all()
                p = found.values[part.size :]
                assert np.all((p > 0) & (p < 1))
