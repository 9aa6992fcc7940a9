# SPDX-License-Identifier: Apache-2.0
"""The parts of a ColumnStep: each a mechanism that needs whole columns, with its public parameters.

All but SubsampleAggregate are for data sets whose unit is a row. Amounts are integers in the units
of domain.cost; what a part costs is said by mechanisms.column_registry.cost, beside the proof.
"""

from dataclasses import dataclass
from typing import Literal

from reticent_server.domain.grid import Grid


@dataclass(frozen=True, slots=True)
class Lattice:
    """The public points origin + step·k, k = 0..size, to which every record is rounded first.

    A record's point is a function of the record, so neighbours stay neighbours, and statistics of
    whole numbers of steps are exact. step is a power of two.
    """

    origin: float
    step: float
    size: int


@dataclass(frozen=True, slots=True)
class SmoothMedian:
    """The median with noise in proportion to its smooth sensitivity; the map gives (1, rows)
    values.

    Released.values: (1,) on the lattice, within its bounds.
    """

    lattice: Lattice
    epsilon: int
    delta: int
    unit_rows: int = 1


@dataclass(frozen=True, slots=True)
class GeometricBins:
    """Bins [lowest·ratio^(j+g), lowest·ratio^(j+1+g)) in lattice steps, j = 0..count−1, g ∈ {0, ½};
    bin −1 holds what is smaller, the last one what is larger."""

    lowest: float
    ratio: float
    count: int


@dataclass(frozen=True, slots=True)
class UniformBins:
    """Bins [(j+g)·width, (j+1+g)·width) in lattice steps, g ∈ {0, ½}."""

    width: float


@dataclass(frozen=True, slots=True)
class StableBin:
    """The bin of a public partition in which a statistic lies, where it is safe there (PTR, twice).

    statistic: "iqr" or "median" of the map's (1, rows) values. The partition is tried with g = 0,
    then with g = ½. epsilon, delta: of one of the two tests. Released.values: (3,) the bin's centre
    and its ends, in the units of the data.
    """

    statistic: Literal["iqr", "median"]
    lattice: Lattice
    bins: GeometricBins | UniformBins
    epsilon: int
    delta: int
    unit_rows: int = 1


@dataclass(frozen=True, slots=True)
class MEstimate:
    """One of `cells` candidates with probability ∝ exp(−ε|Σ ψ_c(x_i − θ)|/(4c)); the map gives
    (1, rows) values.

    Candidates are the middles of cells of equal mass under the base, brought within `limits`.
    [lower, upper]: where a uniform base lies, or the quartiles of a Cauchy base. c: in steps of the
    lattice, which reaches from c below the first candidate to c above the last. Released.values:
    (1,) a candidate.
    """

    lattice: Lattice
    c: int
    base: Literal["uniform", "cauchy"]
    lower: float
    upper: float
    limits: tuple[float, float]
    cells: int
    epsilon: int
    unit_rows: int = 1


@dataclass(frozen=True, slots=True)
class DepthDraw:
    """A draw with density ∝ exp(−ηO) on R^d, O the outlyingness over `directions`, after a PTR
    test.

    The map gives (d, rows) values. lattices: one for each coordinate, of 2⁴⁰ steps. directions:
    whole numbers up to 2¹⁰, in lattice steps. scale: the scale of the projections, and with
    "trimmed" their location too. etas: decreasing; where there are several, one is chosen privately
    at epsilon_choice. Released.values: (d + 1,) the point on the lattice, and η; or nothing.
    """

    lattices: tuple[Lattice, ...]
    directions: tuple[tuple[int, ...], ...]
    scale: Literal["iqr", "mad", "trimmed"]
    etas: tuple[float, ...]
    epsilon_choice: int
    epsilon_test: int
    epsilon_draw: int
    delta: int
    unit_rows: int = 1


@dataclass(frozen=True, slots=True)
class ConvexFit:
    """The minimiser of a convex loss of bounded influence, with Gaussian noise, after a PTR test.

    The map gives (size + 3, rows): a weight, the response, the offset, and the vector of the
    coefficients ϑ. loss: "huber" with the tuning constant `tuning`, or "logistic". radius_squared:
    R², to which weights are lowered. floors: decreasing least curvatures m, of which one is chosen
    privately at epsilon_choice. reach, slack: D and r of numerics.convex_fit. delta: of the test.
    Released.values: (size + 1,) ϑ within ±reach, and m; sd: of the noise of a coefficient.
    """

    loss: Literal["huber", "logistic"]
    tuning: float
    size: int
    radius_squared: float
    floors: tuple[float, ...]
    reach: float
    slack: float
    epsilon_choice: int
    epsilon_test: int
    rho_release: int
    delta: int
    unit_rows: int = 1


@dataclass(frozen=True, slots=True)
class AsymptoticFit:
    """The minimiser of a convex loss and p-values of contrasts, with noise by their influence.

    The map, loss, tuning, size, radius_squared, reach and slack are those of ConvexFit. floor: what
    a least curvature counts as at least. The hypothesis of contrast a_j (size,) is a_jᵀϑ + b_j = 0,
    b_j its offset. epsilon_test, delta_test: of each of the k p-values. Released.values:
    (size + k,) ϑ within ±reach, and p-values; their noise is private.
    """

    loss: Literal["huber", "logistic"]
    tuning: float
    size: int
    radius_squared: float
    floor: float
    reach: float
    slack: float
    contrasts: tuple[tuple[float, ...], ...]
    offsets: tuple[float, ...]
    epsilon_fit: int
    delta_fit: int
    epsilon_test: int
    delta_test: int
    unit_rows: int = 1


@dataclass(frozen=True, slots=True)
class AsymptoticLocationScale:
    """Huber's Proposal 2 at the constant `tuning`, with noise by its joint influence.

    The map gives (1, rows) standardised values. floor, reach, slack: of numerics.proposal2_convex.
    Released.values: (2,) location within ±reach and scale within 1 ± reach; their noise is private.
    """

    tuning: float
    floor: float
    reach: float
    slack: float
    epsilon: int
    delta: int
    unit_rows: int = 1


@dataclass(frozen=True, slots=True)
class BlockModel:
    """What is fitted to the records of a block: numerics.block_fits.

    size: m, the number of estimates. tuning: Huber's c, where the equation has one.
    largest_response: a public bound, for the range of a predictor.
    """

    equation: str
    size: int
    tuning: float
    largest_response: float
    bias_corrected: bool


@dataclass(frozen=True, slots=True)
class BlockMean:
    """One estimate of a model, over blocks: its quartiles, and its noisy mean near them.

    candidates: a grid over the public bounds of the estimate.
    default: what a block without an estimate counts as. rho_quartiles, rho_mean: in RHO_UNITS.
    """

    candidates: Grid
    default: float
    rho_quartiles: int
    rho_mean: int


@dataclass(frozen=True, slots=True)
class SubsampleAggregate:
    """Means of a model's estimates over `blocks` secret random blocks of the records.

    The map gives (p + 2, rows): 1 where the record is in use, its response, its row of the design.
    means: one for each estimate. unit_rows: rows of one unit, whose records touch as many blocks.
    Released.values: (4 m,) for each estimate the mean, the noise's standard deviation, and the two
    quartiles over blocks.
    """

    model: BlockModel
    blocks: int
    means: tuple[BlockMean, ...]
    unit_rows: int = 1


ColumnPart = (
    SmoothMedian
    | StableBin
    | MEstimate
    | DepthDraw
    | ConvexFit
    | AsymptoticFit
    | AsymptoticLocationScale
    | SubsampleAggregate
)
