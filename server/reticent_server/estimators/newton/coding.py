"""The standardised design of a regression: made of public facts, a function of one record.

White columns are x̃_j = (x_j − a_j)/b_j, take part in the Mallows weight and are whitened: the
intercept, the terms that are not dummies, and common dummies. Rare dummies keep out of both, because
a rare dummy is a leverage point to a whitened weight (with less than about 1/q_c of the records, the
whitening has no fixed point): they are b⁻¹ = min(4, 1/√p) where they differ from their usual value,
p being the released share of such records, and 0 elsewhere. Without an intercept nothing is centred,
as that would change the model, and b_j² = centre² + scale².

Internal order: intercept, white terms, rare dummies. With w ≤ 1 and at most one of a group of mutually
exclusive dummies away from 0, w‖u‖² ≤ R² = R_c² + Σ_groups max b_j⁻², R_c² = .8 q_c.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from reticent_server.domain.design import Apply, ColumnValue, Design, Expression, Indicator, Term
from reticent_server.domain.facts import Profile
from reticent_server.domain.steps import FloatArray
from reticent_server.estimators.standardise import Location, dummy_frequency, term_location

RADIUS_FACTOR = 0.8
DUMMY_SCALE = 4.0
_COMMON = 0.15


@dataclass(frozen=True, slots=True)
class Coding:
    """A standardised design.

    white, rare: the design's terms by treatment, each with its location (centre a_j, scale b_j);
    response and its location, in the units of the data. radius_squared is R², of which
    white_radius_squared R_c².
    """

    design: Design
    white: tuple[Term, ...]
    white_locations: tuple[Location, ...]
    rare: tuple[Term, ...]
    rare_locations: tuple[Location, ...]
    response: Term
    response_location: Location
    radius_squared: float
    white_radius_squared: float

    @property
    def white_size(self) -> int:
        """q_c: intercept and white terms."""
        return int(self.design.intercept) + len(self.white)

    @property
    def size(self) -> int:
        """q: coefficients in all."""
        return self.white_size + len(self.rare)

    @property
    def columns(self) -> tuple[tuple[Term, Location], ...]:
        """Terms and locations in the internal order, without the intercept."""
        white = zip(self.white, self.white_locations, strict=True)
        return (*white, *zip(self.rare, self.rare_locations, strict=True))

    @property
    def centres(self) -> FloatArray:
        """(q,) in the internal order; 0 for the intercept."""
        return np.array([0.0] * int(self.design.intercept) + [x.centre for _, x in self.columns])

    @property
    def scales(self) -> FloatArray:
        """(q,) in the internal order; 1 for the intercept."""
        return np.array([1.0] * int(self.design.intercept) + [x.scale for _, x in self.columns])

    @property
    def reported_order(self) -> tuple[int, ...]:
        """(q,) position in the internal order of each reported coefficient."""
        head = int(self.design.intercept)
        inner = {id(t): head + k for k, t in enumerate((*self.white, *self.rare))}
        return (*range(head), *(inner[id(t)] for t in self.design.terms))


@dataclass(frozen=True, slots=True)
class Split:
    """The design's terms by treatment, and the rare dummies' locations; from the profile alone."""

    white: tuple[Term, ...]
    rare: tuple[Term, ...]
    rare_locations: tuple[Location, ...]


def split_terms(design: Design, profile: Profile | None) -> Split:
    """A dummy is common, and white, where both its values have max(.15, 1/q_c) of the records."""
    shares = [_rarer_share(t, profile) if t.dummy else 1.0 for t in design.terms]
    least = _COMMON
    while True:
        white = tuple(t for t, p in zip(design.terms, shares, strict=True) if p >= least)
        wanted = max(_COMMON, 1 / max(int(design.intercept) + len(white), 1))
        if wanted <= least:
            break
        least = wanted
    rare = tuple(t for t, p in zip(design.terms, shares, strict=True) if p < least)
    locations = tuple(_rare_location(t, design, profile) for t in rare)
    return Split(white, rare, locations)


def code_design(
    design: Design,
    response: Term,
    split: Split,
    white_locations: Sequence[Location],
    response_location: Location,
) -> Coding:
    """The coding of a design, given centres and scales of its white terms and of the response."""
    white_radius = RADIUS_FACTOR * (int(design.intercept) + len(split.white))
    return Coding(
        design=design,
        white=split.white,
        white_locations=tuple(_uncentred(x, design.intercept) for x in white_locations),
        rare=split.rare,
        rare_locations=split.rare_locations,
        response=response,
        response_location=_uncentred(response_location, design.intercept),
        radius_squared=white_radius + _rare_radius(split),
        white_radius_squared=white_radius,
    )


def profile_locations(terms: Sequence[Term], profile: Profile) -> list[Location] | None:
    """Locations of terms; None where the profile lacks a column of one of them."""
    found = [term_location(t, profile) for t in terms]
    return None if any(x is None for x in found) else [x for x in found if x is not None]


def _rarer_share(term: Term, profile: Profile | None) -> float:
    """The share of records with the dummy's rarer value; 0 (rare) where it is not released."""
    frequency = dummy_frequency(term, profile)
    return 0.0 if frequency is None else min(frequency, 1 - frequency)


def _rare_location(term: Term, design: Design, profile: Profile | None) -> Location:
    """Centre: the usual value, 0 or 1 (0 without intercept). Scale: on the maps' lattice."""
    frequency = dummy_frequency(term, profile)
    if frequency is None:
        return Location(0.0, 1 / DUMMY_SCALE)
    usual = 1.0 if frequency > 0.5 and design.intercept else 0.0
    share = 1 - frequency if usual else frequency
    return Location(usual, 1 / min(DUMMY_SCALE, 1 / sqrt(share)))


def _uncentred(x: Location, intercept: bool) -> Location:
    return x if intercept else Location(0.0, sqrt(x.centre**2 + x.scale**2))


def _rare_radius(split: Split) -> float:
    """The largest Σ b_j⁻² over dummies that one record can have away from 0.

    Only indicators of other levels, all at usual value 0, exclude each other.
    """
    groups: dict[object, float] = {}
    seen: set[object] = set()
    for position, (term, where) in enumerate(zip(split.rare, split.rare_locations, strict=True)):
        kinds, codes = _dummy_key(term)
        alone = where.centre != 0 or (kinds, codes) in seen
        seen.add((kinds, codes))
        key: object = position if alone else kinds
        groups[key] = max(groups.get(key, 0.0), where.scale**-2)
    return sum(groups.values())


def _dummy_key(term: Term) -> tuple[object, object]:
    """(columns and kinds of the factors, codes): equal kinds with other codes exclude each other."""
    parts = sorted(_factor_key(f) for f in term.factors)
    return tuple((c, k) for c, k, _ in parts), tuple(code for _, _, code in parts)


def _factor_key(factor: Expression) -> tuple[str, str, float]:
    match factor:
        case Indicator(column, code):
            return column, "level", code
        case ColumnValue(column):
            return column, "value", 1.0
        case Apply(function, argument, parameter, basis):
            column, kind, code = _factor_key(argument)
            return column, f"{function}({kind})^{parameter}{basis or ''}", code
