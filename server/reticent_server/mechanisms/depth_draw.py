"""A private projection-depth median: propose–test–release, then an exact draw from exp(−ηO_D).

Domain: d ≤ 8 columns of n records; unit a row. Output: a point of a public lattice, or nothing. Tier:
unconditional, No Reply possible.

Directions are fixed and public. Records are rounded to whole numbers first, directions are whole
numbers, so projections and their order statistics are exact. With the certificate E_k of
numerics.depth_certificate the margin is

    q(D) = #{k ≥ 0: E_0, …, E_k ≤ ε_r} = 1 + max{k: E_k ≤ ε_r}, 0 if E_0 > ε_r.

Proof. q(D) ≥ 1 means that the laws on D and on every neighbour are (ε_r, δ)-close (the certificate's claim
at k = 0). E_{k−1} of a neighbour is ≤ E_k, so q has sensitivity 1. By mechanisms.ptr, test and draw are
(ε₁ + ε_r, δ)-DP with δ₁ = δ, and δ-approximately (½ε₁² + ½ε_r²)-zCDP. Where η is chosen from a public list
η_1 > η_2 > …, the exponential mechanism with score min(q_j, cap) − c·j, of sensitivity 1, does it before at ε_a
(mechanisms.selection); test and draw follow at the chosen η, which is public from then on: ε_a more, and
ε_a²/8 in ρ.

The draw is exact in real arithmetic (numerics.simplex_envelope): proposals under exp(−ηh), h ≤ O, kept with
probability exp(−η(O − h)), without a limit on their number; no Markov chain. In floating point the
proposals carry relative errors near 10⁻¹³ and the uniforms have 104 bits; the draw is rounded to the
lattice. The number of proposals depends on the data, hence so does the time within the deadline.

Errors: none that depend on the data. Source: Zuo (2003); Brown et al. (2021).
"""

from collections.abc import Mapping
from math import ceil
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reticent_server.accounting.conversions import rho_of_bounded_range, rho_of_pure
from reticent_server.domain.columns import DepthDraw
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, PrivacyCost
from reticent_server.domain.private import Private
from reticent_server.domain.steps import FloatArray, Released
from reticent_server.mechanisms import ptr, selection
from reticent_server.mechanisms._sampler import exponentials, uniforms
from reticent_server.numerics.depth import Projections
from reticent_server.numerics.depth_certificate import Certificate
from reticent_server.numerics.depth_iqr import IqrProjections
from reticent_server.numerics.depth_mad import MadProjections
from reticent_server.numerics.depth_trimmed import TrimmedProjections
from reticent_server.numerics.lattices import to_lattice
from reticent_server.numerics.order_statistics import safe_distance
from reticent_server.numerics.simplex_envelope import Affine, Simplex, affine_functions, envelope

_BATCHES = (256, 1024, 4096)
_FARTHEST = 2.0**52


class _Family(Protocol):
    def measure(self, data: FloatArray, directions: FloatArray, reach: int) -> Projections: ...


FAMILIES: Mapping[str, _Family] = {
    "iqr": IqrProjections,
    "mad": MadProjections,
    "trimmed": TrimmedProjections,
}


def cost(part: DepthDraw) -> PrivacyCost:
    """(ε_a + ε₁ + ε_r, δ), and δ-approximately (ε_a²/8 + ½ε₁² + ½ε_r²)-zCDP."""
    tested = rho_of_pure(part.epsilon_test) + rho_of_pure(part.epsilon_draw)
    return PrivacyCost(
        epsilon=part.epsilon_choice + part.epsilon_test + part.epsilon_draw,
        delta=part.delta,
        rho=rho_of_bounded_range(part.epsilon_choice) + tested,
        rho_delta=part.delta,
    )


def whole_numbers(part: DepthDraw, values: FloatArray) -> FloatArray:
    """(d, n) lattice steps around the middle of each lattice; at most 2³⁹ in size."""
    rows = zip(part.lattices, values, strict=True)
    return np.stack([to_lattice(lattice, row) - lattice.size // 2 for lattice, row in rows])


def measure(part: DepthDraw, data: FloatArray) -> Projections:
    """What the certificate and the draw need. data: (d, n) whole numbers."""
    return FAMILIES[part.scale].measure(data, _directions(part), _cap(part, data.shape[1]))


def margin(part: DepthDraw, projections: Projections, eta: float, n: int) -> int:
    """min(q, cap) at this η."""
    certificate = Certificate(_directions(part), projections, part.delta / DELTA_UNITS)
    epsilon = part.epsilon_draw / EPSILON_UNITS
    return safe_distance(lambda i: certificate.safe(i - 1, eta, epsilon), _cap(part, n))


def release(part: DepthDraw, values: Private[FloatArray]) -> Released:
    """Chooses η where there is a choice, tests, and draws."""
    data = whole_numbers(part, values.unwrap())
    projections = measure(part, data)
    n = data.shape[1]
    margins = [margin(part, projections, eta, n) for eta in part.etas]
    chosen = _choose(part, margins) if len(part.etas) > 1 else 0
    if not ptr.passes(Private(margins[chosen]), part.epsilon_test, part.delta):
        return Released(np.empty(0), 0.0, passed=False)
    eta = part.etas[chosen]
    steps = draw(_directions(part), projections.location, projections.scale, eta)
    return Released(np.append(_in_units(part, steps), eta), 0.0)


def scores(part: DepthDraw, margins: list[int]) -> NDArray[np.int64]:
    """min(q_j, cap) − c·j: the larger η is preferred where its margin is about as good."""
    step = ceil(_selection_scale(part))
    return np.array([q - step * j for j, q in enumerate(margins)], dtype=np.int64)


def _choose(part: DepthDraw, margins: list[int]) -> int:
    return selection.select(Private(scores(part, margins)), _selection_scale(part))


def _selection_scale(part: DepthDraw) -> float:
    return selection.gumbel_scale(1, rho_of_bounded_range(part.epsilon_choice) - 1)


def _cap(part: DepthDraw, n: int) -> int:
    return ptr.margin_cap(part.epsilon_test, part.delta, n)


def _directions(part: DepthDraw) -> FloatArray:
    return np.array(part.directions, dtype=np.float64)


def draw(directions: FloatArray, location: FloatArray, scale: FloatArray, eta: float) -> FloatArray:
    """(d,) one exact draw with density ∝ exp(−ηO), in whole-number coordinates.

    It is made in coordinates that are centred and scaled by the data, which changes nothing.
    """
    x0 = np.linalg.lstsq(directions, location, rcond=None)[0]
    unit = float(np.median(scale)) / float(np.abs(directions).max())
    functions = affine_functions(directions * unit, location - directions @ x0, scale)
    return np.asarray(x0 + unit * standard_draw(functions, envelope(functions, eta), eta))


def standard_draw(functions: Affine, simplex: Simplex, eta: float) -> FloatArray:
    """(d,) proposals from the simplex, batch by batch, until one is kept."""
    batch = 0
    while True:
        size = _BATCHES[min(batch, len(_BATCHES) - 1)]
        tau, points = propose(simplex, eta, size)
        excess = functions.largest(points) - (simplex.lowest + tau)
        kept = np.flatnonzero(exponentials(size) >= eta * excess)
        if len(kept):
            return np.asarray(points[:, kept[0]])
        batch += 1


def propose(simplex: Simplex, eta: float, size: int) -> tuple[FloatArray, FloatArray]:
    """(size,) levels τ and (d, size) points with density ∝ exp(−ηh)."""
    corners = len(simplex.shares)
    tau = exponentials((corners - 1) * size).reshape(corners - 1, size).sum(axis=0) / eta
    facets = np.searchsorted(np.cumsum(simplex.shares)[:-1], uniforms(size), side="right")
    weights = exponentials(corners * size).reshape(corners, size)
    return tau, simplex.points(tau, facets, weights)


def _in_units(part: DepthDraw, steps: FloatArray) -> FloatArray:
    """The nearest point of the lattices, in the units of the data."""
    whole = np.rint(np.clip(steps, -_FARTHEST, _FARTHEST))
    points = [
        lattice.origin + lattice.step * (step + lattice.size // 2)
        for lattice, step in zip(part.lattices, whole, strict=True)
    ]
    return np.array(points)
