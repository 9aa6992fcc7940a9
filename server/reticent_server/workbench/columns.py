# SPDX-License-Identifier: Apache-2.0
"""The codebook of a data set: each column with what is declared and what its profile has
released."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from reticent_server.domain.facts import ColumnProfile, DatasetFacts
from reticent_server.domain.principal import Principal
from reticent_server.domain.schema import Column
from reticent_server.errors import NotFound
from reticent_server.pipeline.browse import granted_facts
from reticent_server.pipeline.services import Services

WIDTH, HEIGHT = 88.0, 26.0
"""Of a sparkline, in the units of its viewBox: pixels in the codebook."""

SPIKE = 2.0
"""Width of the bar of a single value, in the same units: the least that is seen."""

_MANY_LEVELS = 12
"""Labels that are listed; of more, only how many there are."""


@dataclass(frozen=True, slots=True)
class SparkBar:
    """A bar of a small histogram. x, y: its upper left corner; all in the picture's units."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class CodebookRow:
    """missing: a share of the records; None: the column has none, or no profile is released. told:
    what the sparkline shows, in words. role, label: as of Column."""

    name: str
    kind: str
    domain: str
    missing: float | None
    bars: tuple[SparkBar, ...]
    told: str
    role: str = ""
    label: str = ""


def labels(services: Services, principal: Principal, dataset: str) -> dict[str, str]:
    """What a data set's columns are called, by name; empty of one that is retired, or that the
    caller may not ask about (any more).
    """
    try:
        columns = granted_facts(services, principal, dataset).schema.columns
    except NotFound:
        return {}
    return {column.name: column.label for column in columns if column.label}


def codebook(facts: DatasetFacts) -> tuple[CodebookRow, ...]:
    """A row for every column; public facts alone."""
    profiles = {} if facts.profile is None else facts.profile.columns
    return tuple(_row(facts, c, profiles.get(c.name)) for c in facts.schema.columns)


def _row(facts: DatasetFacts, column: Column, known: ColumnProfile | None) -> CodebookRow:
    missing = None
    if known is not None and known.missing is not None:
        missing = min(1.0, max(0.0, known.missing / facts.n))
    bars, told = _sparkline(column, known)
    kind, domain = column.shown_kind, _domain(column)
    return CodebookRow(column.name, kind, domain, missing, bars, told, column.role, column.label)


def _domain(column: Column) -> str:
    if len(column.levels) > _MANY_LEVELS:
        return f"{len(column.levels)} levels"
    if column.is_date:
        return f"{column.shown(column.lower)} to {column.shown(column.upper)}"
    return ", ".join(column.levels) or f"{_bound(column.lower)} to {_bound(column.upper)}"


def _bound(value: float) -> str:
    """A year without a comma; ten thousands and more with commas."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:g}"


def _sparkline(column: Column, known: ColumnProfile | None) -> tuple[tuple[SparkBar, ...], str]:
    if known is None:
        return (), ""
    if known.counts:
        return _counted(column, known)
    if known.quantiles:
        return _density(known)
    return (), ""


def _counted(column: Column, known: ColumnProfile) -> tuple[tuple[SparkBar, ...], str]:
    counts = [max(0.0, count) for count in known.counts or ()]
    total = sum(counts) or 1.0
    plain = [f"{known.first + i:g}" for i in range(len(counts))]
    labels = list(column.levels) if len(column.levels) == len(counts) else plain
    most = sorted(zip(labels, counts, strict=True), key=lambda pair: -pair[1])[:5]
    shares = ", ".join(f"{name} {count / total:.0%}" for name, count in most)
    step = WIDTH / len(counts)
    widths = [(i * step, max(0.5, step - 2 if step > 4 else step)) for i in range(len(counts))]
    return _bars(widths, counts), f"Shares: {shares}"


def _density(known: ColumnProfile) -> tuple[tuple[SparkBar, ...], str]:
    """The density between released quantiles, from the 5th to the 95th."""
    pairs = list(zip(known.probabilities, known.quantiles or (), strict=True))
    inner = [(p, q) for p, q in pairs if 0.05 <= p <= 0.95]
    low, high = inner[0][1], inner[-1][1]
    middle = min(inner, key=lambda pair: abs(pair[0] - 0.5))[1]
    told = f"Middle value {middle:,.4g}; 9 in 10 between {low:,.4g} and {high:,.4g}"
    if high <= low:
        return (), told
    scale = WIDTH / (high - low)
    shares: dict[tuple[float, float], float] = {}
    for (p, a), (q, b) in pairwise(inner):  # a value that many records share is a bar of its own
        wide = max(SPIKE, (b - a) * scale)
        place = (min((a - low) * scale, WIDTH - wide), wide)
        shares[place] = shares.get(place, 0.0) + q - p
    return _bars(list(shares), [share / wide for (_, wide), share in shares.items()]), told


def _bars(widths: Sequence[tuple[float, float]], heights: Sequence[float]) -> tuple[SparkBar, ...]:
    top = max(heights, default=0.0) or 1.0
    scaled = [max(1.0, HEIGHT * height / top) for height in heights]
    return tuple(
        SparkBar(x, HEIGHT - tall, width, tall)
        for (x, width), tall in zip(widths, scaled, strict=True)
    )
