# SPDX-License-Identifier: Apache-2.0
"""The standardised design of a fit: made of public facts, a function of one record.

x̃_j = (x_j − a_j)/b_j, with centres and scales from the public rows; without an intercept nothing
is centred, as that would change the model. x̃ is where records are put on a lattice (fitting.maps);
what the fit works in are combinations u = W x̃, so that a_j and b_j do not matter for what it
estimates.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from reticent_server.domain.design import Design, Term
from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.public.rows import PublicRows
from reticent_server.fitting.public.standardise import Location

LATTICE_BITS, RANGE_BITS = 20, 8  # x̃ lies on multiples of 2⁻²⁰ within ±2⁸
# of |x̃|: values beyond it are cut there (fitting.maps)
LARGEST = 2.0**RANGE_BITS
_COARSEST = 2.0 ** (LATTICE_BITS - 6)  # leaves 2⁶ steps of the lattice to a standard deviation
_CONSTANT = 1e-12  # relative spread of a term that is constant to the floats


@dataclass(frozen=True, slots=True)
class TermCoding:
    """A design with the location of each term, in the units of the data."""

    design: Design
    locations: tuple[Location, ...]

    @property
    def size(self) -> int:
        """q: coefficients in all."""
        return int(self.design.intercept) + len(self.locations)

    @property
    def centres(self) -> FloatArray:
        """(q,), 0 for the intercept."""
        return np.array([0.0] * int(self.design.intercept) + [x.centre for x in self.locations])

    @property
    def scales(self) -> FloatArray:
        """(q,), 1 for the intercept."""
        return np.array([1.0] * int(self.design.intercept) + [x.scale for x in self.locations])

    def standardised(self, X: FloatArray) -> FloatArray:
        """(rows, q) x̃ of rows X of the design as written."""
        return np.asarray((X - self.centres) / self.scales)


@dataclass(frozen=True, slots=True)
class Coding(TermCoding):
    """A design with the location of each term and of the response, in the units of the data."""

    response: Term
    response_location: Location


def code_design(
    design: Design, response: Term, rows: PublicRows, response_location: Location
) -> Coding:
    """The coding of a design by public rows: a term's mean and standard deviation there."""
    return Coding(design, _locations(design, rows), response, response_location)


def code_terms(design: Design, rows: PublicRows) -> TermCoding:
    """The coding of a design without response, as code_design."""
    return TermCoding(design, _locations(design, rows))


@lru_cache(maxsize=2)
def _locations(design: Design, rows: PublicRows) -> tuple[Location, ...]:
    head = int(design.intercept)
    columns = zip(design.terms, rows.X.T[head:], strict=True)
    return tuple(_location(term, x, centred=design.intercept) for term, x in columns)


def _location(term: Term, values: FloatArray, *, centred: bool) -> Location:
    """Wide enough for the declared bounds to lie within the lattice's range, as far as its steps
    stay fine.
    """
    centre = float(np.mean(values)) if centred else 0.0
    spread = float(np.sqrt(np.mean((values - centre) ** 2)))
    reach = max(abs(term.lower - centre), abs(term.upper - centre))
    if not np.isfinite(spread) or spread <= _CONSTANT * abs(centre):
        spread = reach / 3**0.5 if 0 < reach < np.inf else 1.0
    return Location(centre, max(spread, min(reach / LARGEST, spread * _COARSEST)))
