"""One-dimensional M-estimation by the exponential mechanism, sampled exactly.

Domain: one column of n records within public bounds; unit a row. Output: a point of a public lattice.
Tier: unconditional, pure: δ = 0.

The density is ∝ μ(θ) exp(−ε|S(θ)|/(4K)), S(θ) = Σ ψ_c(x_i − θ), with Huber's ψ_c, K = c its bound, and μ a
public base: uniform on [lower, upper], or the Cauchy law with these quartiles.

Proof. Replacing a record changes S(θ) by at most 2K at every θ, so the score −|S| has sensitivity 2K and
the exponent is ε·score/(2·2K): the exponential mechanism (McSherry & Talwar 2007) for any base μ. It is
ε-DP and, being bounded-range with parameter ε, ε²/8-zCDP (Dong, Durfee & Rogers 2020). Chaudhuri & Hsu
(2012, §5.2) print 2K in place of 4K, which is ε-DP only up to a factor 2: on D = {0, 0, 2, 2, 2000, 2000}
against {0, 2, 2, 2000, 2000, 2000} with c = 1 the log-ratio at θ = 1 is 1.998 ε.

Records are rounded to the lattice first (a function of the record), so S is exact at its knots.
Sampling: a piece between knots with its exact mass, then the inverse of the distribution function in
it. The Cauchy density is not exponential: pieces are cut at public points between which it falls by a
factor 2^(−1/2) at most, μ is replaced by its largest value there, and the draw is kept with probability
μ(θ)/max μ, else drawn again: exact, and the chance of another round is below .3 whatever the data.
Exact means in real arithmetic: masses are float64 with relative errors of 10⁻¹², uniforms have 104 bits,
and the draw is rounded to 2⁻¹⁰ lattice steps and kept within the column's bounds.

Errors: none that depend on the data. Source: Chaudhuri & Hsu (2012).
"""

from dataclasses import dataclass
from math import pi

import numpy as np

from reticent_server.accounting.conversions import rho_of_bounded_range
from reticent_server.domain.columns import MEstimate
from reticent_server.domain.cost import EPSILON_UNITS, PrivacyCost
from reticent_server.domain.private import Private
from reticent_server.domain.steps import FloatArray, Released
from reticent_server.mechanisms._sampler import uniforms
from reticent_server.numerics.lattices import to_lattice
from reticent_server.numerics.piecewise_exponential import (
    Pieces,
    huber_pieces,
    log_masses,
    place_within,
)

_FARTHEST = 2.0**53
_CUTS = 2.0 ** np.arange(-2, 60, 0.25)
_DRAW_BITS = 10


def cost(part: MEstimate) -> PrivacyCost:
    """(ε, 0), and ε²/8-zCDP."""
    return PrivacyCost(part.epsilon, 0, rho_of_bounded_range(part.epsilon))


def rate(part: MEstimate) -> float:
    """a = ε/(4K), in inverse lattice steps."""
    return part.epsilon / EPSILON_UNITS / (4 * part.c)


@dataclass(frozen=True, slots=True, eq=False)
class Density:
    """A density as pieces with log masses (envelopes of it under a Cauchy base): private.

    tops: ln max μ of the pieces. tails: the log mass of one tail beyond the pieces, −∞ for none.
    """

    part: MEstimate
    pieces: Pieces
    exponent: FloatArray
    tops: FloatArray
    tails: float

    @property
    def logs(self) -> FloatArray:
        """(pieces + 2,) log masses: the pieces, the tail below, the tail above."""
        inner = log_masses(self.pieces.width, self.exponent[:-1], self.exponent[1:]) + self.tops
        return np.append(inner, [self.tails, self.tails])

    def draw(self) -> float:
        """One exact draw, in lattice steps."""
        logs = self.logs
        bounds = np.cumsum(np.exp(logs - logs.max()))
        while True:
            u, place, keep = uniforms(3).tolist()
            k = min(int(np.searchsorted(bounds, u * bounds[-1], side="right")), len(bounds) - 1)
            if k >= len(self.tops):
                return self._tail(place, above=k > len(self.tops))
            rise = float(self.exponent[k + 1] - self.exponent[k])
            theta = float(self.pieces.t[k] + self.pieces.width[k] * place_within(place, rise))
            if keep <= np.exp(log_base(self.part, np.array([theta]))[0] - self.tops[k]):
                return theta

    def _tail(self, place: float, *, above: bool) -> float:
        """A draw of the Cauchy law beyond the farthest point: its angle is uniform."""
        far = self.part.scale / np.tan(_tail_angle(self.part) * place)
        return float(self.part.centre + (far if above else -far))


def _tail_angle(part: MEstimate) -> float:
    return float(np.arctan(part.scale / _FARTHEST))


def density(part: MEstimate, x: FloatArray) -> Density:
    """The density for lattice steps x (n,)."""
    if part.base == "uniform":
        points = np.array([part.lower, part.upper])
    else:
        near = part.scale * _CUTS
        near = np.append(near[near < _FARTHEST], _FARTHEST)
        points = part.centre + np.concatenate([-near[::-1], [0.0], near])
    pieces = huber_pieces(x, part.c, points)
    exponent = rate(part) * pieces.size
    nearest = np.clip(part.centre, pieces.t[:-1], pieces.t[1:])
    tops = log_base(part, nearest)
    tail = -np.inf
    if part.base == "cauchy":
        tail = float(np.log(_tail_angle(part) / pi) - exponent[-1])
    return Density(part, pieces, exponent, tops, tail)


def log_base(part: MEstimate, theta: FloatArray) -> FloatArray:
    """ln μ(θ), up to a constant for the uniform base."""
    if part.base == "uniform":
        return np.zeros(len(theta))
    z = (theta - part.centre) / part.scale
    return np.asarray(-np.log(pi * part.scale) - np.log1p(z * z))


def release(part: MEstimate, values: Private[FloatArray]) -> Released:
    """One draw, rounded and kept within the column's bounds."""
    theta = density(part, to_lattice(part.lattice, values.unwrap()[0])).draw()
    kept = min(max(theta, 0.0), float(part.lattice.size))
    steps = float(np.rint(np.ldexp(kept, _DRAW_BITS)))
    return Released(
        np.array([part.lattice.origin + part.lattice.step * np.ldexp(steps, -_DRAW_BITS)]), 0.0
    )
