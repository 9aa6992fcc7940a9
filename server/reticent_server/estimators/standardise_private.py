"""A mini-profile: the quantiles that a query needs, released at its own expense where no profile is.

One pass, one QuantileTree for each standardised term and for the response, over the records in use.
Centre: the median; scale: IQR/1.349, and where the IQR is 0 (a column that is mostly one value) the
10-90 % range/2.563, then (upper − lower)/√12. The outer quantiles are not used otherwise: at a small
share of ρ, under wide bounds, they are far less reliable than the quartiles.

Privacy: the recursive exponential mechanism (mechanisms.quantile_tree), the parts composing by zCDP.
A curator's profile is cheaper: it is paid once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.design import ColumnValue, Design, Term
from reticent_server.domain.grid import Grid
from reticent_server.domain.schema import ColumnKind, Schema
from reticent_server.domain.steps import Block, FloatArray, QuantileTree, Released, SumStep
from reticent_server.estimators.standardise import NORMAL_IQR, Location, usable_scale
from reticent_server.numerics.evaluate import evaluate_term, in_use
from reticent_server.numerics.grids import cell_codes, repeats

PROBABILITIES = (0.1, 0.25, 0.5, 0.75, 0.9)
LEAST_SHARE, LARGEST_SHARE = 0.05, 0.20
_NORMAL_80_RANGE = 2.5631031310892007
_LEVELS = 3
_RANK_NOISE = 0.01


@dataclass(frozen=True, slots=True)
class QuantileMap:
    """Gives for each term the cells (rows,) of the records in use on its grid.

    integers: names of the terms that take integer values only.
    """

    design: Design
    terms: tuple[Term, ...]
    integers: frozenset[str]

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The terms' public grids."""
        return tuple(Grid(t.lower, t.upper, t.name in self.integers) for t in self.terms)

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        used = in_use(self.design, block) if self.design.masked else None
        values = [evaluate_term(term, block) for term in self.terms]
        return tuple(cell_codes(v, grid, used) for v, grid in zip(values, self.grids, strict=True))


@dataclass(frozen=True, slots=True)
class MiniProfile:
    """A planned mini-profile of the map's terms, each at `part_rho` (RHO_UNITS)."""

    map_fn: QuantileMap
    part_rho: int
    unit_rows: int

    @property
    def rho(self) -> int:
        return self.part_rho * len(self.map_fn.terms)

    @property
    def step(self) -> SumStep:
        parts = tuple(
            QuantileTree(grid, PROBABILITIES, self.part_rho, self.unit_rows, repeats(grid))
            for grid in self.map_fn.grids
        )
        return SumStep("quantiles", parts, self.map_fn)

    def locations(self, released: Sequence[Released]) -> list[Location]:
        """The terms' centres and scales, from the released quantiles."""
        return [_location(r, t) for t, r in zip(self.map_fn.terms, released, strict=True)]


def plan_mini_profile(
    design: Design, terms: tuple[Term, ...], schema: Schema, n: int, rho: int
) -> MiniProfile:
    """A mini-profile of the terms out of a query's `rho`; each grid from the term's public bounds.

    Its share is 5 % of rho, up to 20 % where the noise of a selection would exceed n/100 ranks.
    """
    integers = frozenset(t.name for t in terms if _is_integer(t, schema))
    wanted = len(terms) * _LEVELS * (schema.unit.max_rows / (_RANK_NOISE * n)) ** 2 / 2
    share = min(LARGEST_SHARE, max(LEAST_SHARE, wanted * RHO_UNITS / rho))
    part_rho = max(1, int(share * rho) // len(terms))
    return MiniProfile(QuantileMap(design, terms, integers), part_rho, schema.unit.max_rows)


def _location(released: Released, term: Term) -> Location:
    low, first, centre, third, high = (float(v) for v in released.values)
    candidates = ((third - first) / NORMAL_IQR, (high - low) / _NORMAL_80_RANGE)
    return Location(centre, usable_scale(candidates, term.lower, term.upper))


def _is_integer(term: Term, schema: Schema) -> bool:
    if len(term.factors) != 1 or not isinstance(term.factors[0], ColumnValue):
        return False
    column = schema.column(term.factors[0].column)
    return column is not None and column.kind is not ColumnKind.NUMERIC
