# SPDX-License-Identifier: Apache-2.0
"""A public table that looks like the data, one column at a time: drawn from released marginals.

Every column that a design reads is drawn from its profile, independently of the others: a level by
its released share, a number by interpolation between its released quantiles. The design's terms,
the response and the mask are then evaluated on these rows as they are on data. What comes out says
how rare, skewed, tied and mutually orthogonal the terms are as written, whatever contrasts, units,
centring or bases the analyst has chosen, and how many records a `where` leaves. It is a function of
released values and public randomness: post-processing. How columns depend on each other it does not
know; that a fit learns from its own releases (fitting.whitening).
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.design import Design
from reticent_server.domain.facts import ColumnProfile, DatasetFacts
from reticent_server.domain.patience import checkpoint
from reticent_server.domain.schema import ABSENT, Schema
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.numerics.evaluate import (
    evaluate,
    evaluate_term,
    evaluate_terms,
    in_use,
    shares,
)
from reticent_server.numerics.person_columns import prepared
from reticent_server.numerics.public_random import public_generator

ROWS = 4096  # rows of one draw: moments of a design to about 1/√4096 = 1.6 %
_BESIDE = 2  # columns of drawn rows beside terms and response: offset and share
_DRAWS = 16  # draws at the most, for a `where` that leaves few of them
_ENOUGH = 1024  # rows in use from which a law is described well enough
# of 64 KiB: those of a formula of 256 columns, planned again and again until its ε is chosen
_KEPT_COLUMNS = 320
# of 8 MB with 256 terms: a plan has one design, and asks for its rows at every τ and at every ε
_KEPT_TABLES = 2
_LEVEL_FLOOR = 0.25  # of a count's noise: what a level with a released count of 0 is taken to have
_VALUE_FLOOR = 0.02  # the same of a whole number among many, most of which may be absent
_UNKNOWN_NOISE = 1e-4  # of all records, of a count whose noise is not known
# of filled cells, so that their indicator is no constant: forty of ROWS, whatever noise has said
_FILLED_FLOOR = 0.01
_TAIL_SHAPES = (-0.5, 1.0)  # of a tail beyond the last quantile: uniform-like ends to a Cauchy's
# less than 0: of a generalised Pareto tail from a normal law's median and quartile that is within
# .1 standard deviations of it up to the quantile .98, and .3 up to .999
_NORMAL_SHAPE = 0.35
_ROUNDING = 1e-9  # of probabilities
_EXPONENTIAL = 1e-6  # a shape nearer to 0 than that is an exponential tail to the floats
_SPIKE, _KNOWN = 0.5, 3  # probability of one value, and quantiles beside it that say what is there
_MANY = 32  # values from which on a column's counts are those of whole numbers
LEAST_SHARE = 0.002  # share of records in use below which a plan counts on no less


@dataclass(frozen=True, slots=True, eq=False)
class PublicRows:
    """Rows in use of a public table.

    X: (rows, q) the design as written, the intercept (if any) first. y: (rows,) the response (zeros
    without one). share: of the records, those that are expected to be in use; of a weighted design
    what its weights are expected to sum to, relative to n, the rows being drawn by their weights.
    offset: (rows,). unequal: E a²/E a of shares a.
    """

    X: FloatArray
    y: FloatArray
    share: float
    offset: FloatArray
    unequal: float = 1.0


@dataclass(frozen=True, slots=True)
class _Drawing:
    """All that rows are drawn from. columns: of the design's, in their order. masked: as of
    draw_public_rows.
    """

    design: Design
    columns: tuple[ColumnProfile, ...]
    n: int
    schema: Schema
    masked: bool


def draw_public_rows(
    design: Design, facts: DatasetFacts, *, masked: bool = True
) -> PublicRows | None:
    """Public rows of a design; None where no profile covers its columns. Read-only: the last few
    tables are kept.

    masked: whether the mask is applied (not where the marginals are those of the records in use).
    """
    released = {} if facts.profile is None else facts.profile.columns
    columns = tuple(released[name] for name in design.columns if released.get(name) is not None)
    if facts.profile is None or len(columns) < len(design.columns):
        return None
    return _drawn(_Drawing(design, columns, facts.n, facts.schema, masked))


@lru_cache(maxsize=_KEPT_TABLES)
def _drawn(drawing: _Drawing) -> PublicRows:
    design = drawing.design
    drawn, used = _rows(drawing, 0)
    seen, kept = len(used), [drawn[used]]
    # marginals of the records in use say nothing of persons without enough rows
    apply_mask = design.masked and (drawing.masked or design.persons is not None)
    if not apply_mask:
        return _finished(drawn, 1.0, weighted=design.weight is not None)
    while sum(map(len, kept)) < _ENOUGH and seen < _DRAWS * ROWS:
        more, used = _rows(drawing, len(kept))
        seen += len(used)
        kept.append(more[used])
    rows = np.vstack(kept)
    share = max(len(rows) / seen, LEAST_SHARE)
    enough = len(rows) >= drawn.shape[1] - _BESIDE
    return _finished(rows if enough else drawn, share, weighted=design.weight is not None)


def _finished(drawn: FloatArray, share: float, *, weighted: bool) -> PublicRows:
    """Rows with a value that is not finite are left out, as their contributions are."""
    rows = drawn[np.isfinite(drawn).all(axis=1)]
    if not len(rows):
        rows = np.zeros((1, drawn.shape[1]))
    unequal = 1.0
    if weighted:
        rows, mean, unequal = _by_weight(rows)
        share = max(share * mean, LEAST_SHARE)
    rows.flags.writeable = False
    return PublicRows(rows[:, :-3], rows[:, -3], share, rows[:, -2], unequal)


def _by_weight(rows: FloatArray) -> tuple[FloatArray, float, float]:
    """Rows (rows, k) drawn by the shares a in their last column, systematically; E a, and E a²/E
    a.
    """
    a = rows[:, -1]
    total = float(a.sum())
    if not total > 0:
        return rows, 0.0, 1.0
    places = (np.arange(len(rows)) + 0.5) * (total / len(rows))
    drawn = rows[np.searchsorted(np.cumsum(a), places).clip(max=len(rows) - 1)]
    return drawn, total / len(rows), float((a**2).sum()) / total


def _rows(drawing: _Drawing, draw: int) -> tuple[FloatArray, NDArray[np.bool_]]:
    """(rows, q + 3) terms, response, offset and share that counts, and which rows are in use."""
    checkpoint()
    design, schema, n = drawing.design, drawing.schema, drawing.n
    stored, values, missing = design.stored, {}, {}
    rows = (
        ROWS
        if design.persons is None
        else max(ROWS // design.persons.rows, 1) * design.persons.rows
    )
    for name, released in zip(design.columns, drawing.columns, strict=True):
        column = schema.column(name)
        bounds = (0.0, 1.0) if column is None else (column.lower, column.upper)
        values[name], chances = _column(released, name, draw, rows, bounds)
        if name in design.filled_columns:
            share = max(missing_share(released, n), _FILLED_FLOOR)
            missing[name] = chances < share
        elif name in stored.missing_columns or (column is not None and column.may_be_missing):
            missing[name] = chances < missing_share(released, n)
    if ABSENT in stored.missing_columns:
        rng, m = public_generator("public rows", ABSENT, str(draw)), schema.unit.max_rows
        missing[ABSENT] = rng.random(rows) > (m + 1) / (2 * m)
    block = prepared(design, Block(0, rows, values, missing))
    head = [np.ones(rows)] * int(design.intercept)
    y = np.zeros(rows) if design.response is None else evaluate_term(design.response, block)
    with np.errstate(all="ignore"):
        terms = evaluate_terms(design.terms, block)
        o = np.zeros(rows) if design.offset is None else evaluate(design.offset, block)
        a = np.ones(rows) if design.weight is None else shares(design.weight, block)
        return np.column_stack([*head, *terms, y, o, a]), in_use(design, block)


@lru_cache(maxsize=_KEPT_COLUMNS)
def _column(
    released: ColumnProfile, name: str, draw: int, rows: int, bounds: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """(rows,) values of a column in an order of its own, and (rows,) chances in [0, 1);
    read-only.
    """
    rng = public_generator("public rows", name, str(draw))
    order = rng.permutation(rows)
    levels = (np.arange(rows) + 0.5) / rows
    drawn = marginal(released, levels, bounds)[order], rng.random(rows)
    for array in drawn:
        array.flags.writeable = False
    return drawn


def marginal(
    released: ColumnProfile, levels: FloatArray, bounds: tuple[float, float]
) -> FloatArray:
    """(rows,) values of a column at the probabilities `levels` (rows,) in (0, 1).

    Between released quantiles by interpolation, beyond them as a generalised Pareto tail. Where
    half of the probability has one value and little more is known of what lies on a side of it,
    that side is spread up to the declared bound, and so are both sides of a lone quantile: a
    coordinate that is too short is lengthened on data, one that is too long loses its rows.
    """
    if released.counts is not None:
        edges = np.cumsum(level_shares(released))
        at = np.searchsorted(edges, levels, side="right")
        return np.asarray(released.first + np.minimum(at, len(edges) - 1), dtype=np.float64)
    quantiles = np.maximum.accumulate(np.asarray(released.quantiles or (0.0,), dtype=np.float64))
    probabilities = np.asarray(released.probabilities[: len(quantiles)])
    if len(quantiles) == 1:
        ends, middle = (0.0, probabilities[0], 1.0), (bounds[0], quantiles[0], bounds[1])
        return np.asarray(np.interp(levels, ends, middle), dtype=np.float64)
    values = np.interp(levels, probabilities, quantiles)
    above, below = levels > probabilities[-1], levels < probabilities[0]
    values[above] = upper_tail(probabilities, quantiles, levels[above])
    values[below] = -upper_tail(1 - probabilities[::-1], -quantiles[::-1], 1 - levels[below])
    values = _beside_spike(values, levels, probabilities, quantiles, bounds)
    return np.asarray(np.clip(values, *bounds), dtype=np.float64)


def _beside_spike(
    values: FloatArray,
    levels: FloatArray,
    probabilities: FloatArray,
    quantiles: FloatArray,
    bounds: tuple[float, float],
) -> FloatArray:
    """(rows,) values with unknown sides of a spike spread up to the bounds (lower, upper)."""
    centre = float(np.interp(0.5, probabilities, quantiles))
    at = np.flatnonzero(quantiles == centre)
    if not len(at) or probabilities[at[-1]] - probabilities[at[0]] < _SPIKE:
        return values
    spread, known = values.copy(), (quantiles[: at[0]], quantiles[at[-1] + 1 :])
    ends = (probabilities[at[0]], probabilities[at[-1]])
    masses = (
        ends[0] * (1.0 if len(known[0]) else 0.5),
        (1 - ends[1]) * (1.0 if len(known[1]) else 0.5),
    )
    for side, bound in enumerate(bounds):
        place = (levels if side == 0 else 1 - levels) / max(masses[side], 1e-12)
        if len(np.unique(known[side])) < _KNOWN:
            outside = place < 1
            spread[outside] = bound + (centre - bound) * place[outside]
            spread[(place >= 1) & (values != centre) & ((values < centre) == (side == 0))] = centre
    return spread


def upper_tail(probabilities: FloatArray, quantiles: FloatArray, levels: FloatArray) -> FloatArray:
    """(k,) values beyond the last quantile, at levels above its probability: a generalised Pareto
    tail.

    With x = 1 − p of the last quantile and Q(y) the one exceeded by the share y, the shape is ξ =
    log₂((Q(x) − Q(2x))/(Q(2x) − Q(4x))), kept within [−½, 1]; constant where these coincide.
    Quartiles alone do not reach Q(4x): the other quartile stands in, and of the shape as much is
    subtracted as makes the tail of a symmetric column normal. Source: Pickands (1975).
    """
    x = 1 - float(probabilities[-1])
    last, second, fourth = np.interp(
        1 - np.array([x, 2 * x, min(4 * x, 0.9)]), probabilities, quantiles
    )
    if not last > second > fourth:
        return np.full(len(levels), last)
    less = _NORMAL_SHAPE if 1 - 4 * x < probabilities[0] - _ROUNDING else 0.0
    xi = float(np.clip(np.log2((last - second) / (second - fourth)) - less, *_TAIL_SHAPES))
    xi = xi if abs(xi) > _EXPONENTIAL else _EXPONENTIAL
    scale = xi * (last - second) / (1 - 2**-xi)
    return np.asarray(last + scale / xi * (((1 - levels) / x) ** -xi - 1))


def level_shares(released: ColumnProfile) -> FloatArray:
    """(levels,) shares of sum 1, from counts with noise: the nearest that are not negative, with a
    small floor.
    """
    counts = np.asarray(released.counts, dtype=np.float64)
    total = max(float(counts.sum()), 1.0)
    near = on_simplex(counts, total)
    noise = released.count_sd or _UNKNOWN_NOISE * total
    raised = np.maximum(near, noise * (_VALUE_FLOOR if len(counts) > _MANY else _LEVEL_FLOOR))
    return np.asarray(raised / raised.sum())


def on_simplex(values: FloatArray, total: float) -> FloatArray:
    """The nearest vector (k,) with entries ≥ 0 and this sum (Duchi, Shalev-Shwartz, Singer &
    Chandra 2008).
    """
    ordered = np.sort(values)[::-1]
    cut = (np.cumsum(ordered) - total) / np.arange(1, len(values) + 1)
    last = int(np.max(np.flatnonzero(ordered > cut), initial=0))
    return np.asarray(np.maximum(values - cut[last], 0.0))


def missing_share(released: ColumnProfile, n: int) -> float:
    """The released share of missing cells, of n records."""
    return min(max((released.missing or 0.0) / n, 0.0), 1.0)
