# SPDX-License-Identifier: Apache-2.0
"""Whitening by released Gram matrices of the regressors: what the public rows do not know.

Each round releases S = mean min(1, ρ²/‖u‖²) uuᵀ in the coordinates of the round before. The public
rows U are the model of what it should be there, K. In the frame in which K is I the release is F +
noise,

    E = K^(−1/2) S K^(−1/2) = F + N,   sd of N's entry (i, j) ∝ √(νᵢνⱼ),  νᵢ = sd·(K⁻¹)ᵢᵢ

and F is estimated entry by entry with the gain min(gᵢ, gⱼ), gᵢ = τᵢ²/(τᵢ² + mνᵢ²), τᵢ being how far
F may be from what is known (a positive semi-definite mixture). Then

- *free* coordinates are moved so that the data look like the public rows: with the eigenvalues λ of
  the free block, rid of what noise does to eigenvalues (numerics.matrices.without_noise) and
  floored at the noise, the public rows are stretched until their clipped moment is the released
  one, and W takes the inverse of that. Directions that vary less than the floor are stretched by
  it, and resolved in the next round;
- *rare* coordinates keep their length, which a clipped moment does not show: there F says how many
  rows the data have of what the public rows have (`frequency`);
- *rare combinations*, directions that a stretch does not change, are made as long as the radius
  (`_few_records`).

The axes are turned to the eigenvectors, so that what is not resolved lies along axes. All of it is
a function of released matrices and public rows, hence public.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import exp

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import FloatArray, Released
from reticent_server.fitting.public.coordinates import Coordinates, clipped_moment, moment_spread
from reticent_server.numerics.matrices import eigen, power, powers, rebuild, without_noise

_SHAPE_ONLY = 1.5  # squared radius per coordinate below which most normal rows are clipped
_PRIOR = 1.0  # τ before a release: an entry of F is within ±1 of the public rows'
_FLOOR = 0.7  # share of three standard deviations of noise that an eigenvalue counts at least
_SIGMAS = 3.0  # standard deviations from which an eigenvalue stands out of its noise
SMALLEST_MOMENT = (
    1e-5  # eigenvalue below which a direction is constant: rounding of x̃ is what is left of it
)
_UNSETTLED = 0.25  # share of a round's change of ln(second moment) that may be left after it
_CHANGE = 0.1  # of a ln(second moment), that shows a response to a stretch
_MOST_GROWN = 5.0  # growth of a relative error from a clipped moment to a squared length
_STRETCHED = 0.5  # second moment by which a round has stretched a direction: by 1.4 in length
_FEW_CLEAR = 2.0  # standard deviations: a second moment that was raised to its floor never is
# change of a second moment that leaves all of it unsure: weights of few records, which lie about
# the radius, are not those of public rows that have the same second moment
_UNKNOWN = exp(1 / _UNSETTLED)
_MATCHING = 6  # steps of the stretch of the public rows; each leaves under a third of the error
_MATCHED = 1e-10  # of an entry, about 1: what is left is rounding; forecasts begin there
_LEAST_ERROR = 1e-9  # τ: keeps the gain of a release without noise at 1
_SURE_OF = 1.5  # errors of a frequency that are added to one that is near 0
_LEAST_FREQUENCY = 0.02  # of the expected rows in a rare direction


@dataclass(frozen=True, slots=True, eq=False)
class Whitening:
    """Where the coordinates stand, all public.

    transform: W (q, q), u = Wx̃. rows: U (rows, q), public rows in these coordinates. free: as in
    Coordinates. information: F (q, q) relative to the public rows' K. error: (q,) τ, the error of
    F's entries along the axes. noise: (q,) the last round's noise along the axes. moment: K (q, q)
    of the last radius. stretch: (q,) by what the last round has divided the second moment along the
    axes. start: the coordinates before any release; None where the rounds are none of these.
    """

    transform: FloatArray
    rows: FloatArray
    free: int
    information: FloatArray
    error: FloatArray
    noise: FloatArray
    moment: FloatArray
    stretch: FloatArray
    start: Coordinates | None = None

    @property
    def public(self) -> FloatArray:
        """(rows, q) the public rows where they are: nothing that was released has moved them."""
        if self.start is None:
            raise TypeError("no coordinates that are public alone")
        between = np.linalg.solve(self.start.transform.T, self.transform.T)
        return np.asarray(self.start.rows @ between)

    def inside(self, theta: FloatArray) -> FloatArray:
        """(q,) θ of x̃ as the coefficients of u."""
        return np.asarray(np.linalg.solve(self.transform.T, theta))

    @property
    def unsettled(self) -> FloatArray:
        """(q,) relative error of the second moments along the axes: a share of what the last round
        has changed.
        """
        return np.asarray(_UNSETTLED * np.abs(np.log(self.stretch)))

    @property
    def uninformed(self) -> bool:
        """Whether F is I: nothing that was released differs from the public rows."""
        return np.array_equal(self.information, np.eye(len(self.error)))

    @property
    def as_expected(self) -> bool:
        """Whether F is I and certain enough, so that T is I too."""
        return _SURE_OF * float(np.max(self.error, initial=0.0)) <= 1.0 and self.uninformed

    @property
    def frequency(self) -> FloatArray:
        """T (q, q): Tu of a public row u has the released clipped moment where u has K."""
        if self.as_expected:
            return np.eye(len(self.error))
        up, down = powers(self.moment, (0.5, -0.5))
        return np.asarray(up @ _usable_roots(self)[0] @ down)

    @property
    def seen(self) -> tuple[FloatArray, FloatArray]:
        """What the last round has seen of the information that a fit counts on: (q, q), I but for
        eigenvalues that were raised, and its noise (q,).
        """
        root = _usable_roots(self)[1]
        return np.asarray(root @ self.information @ root), np.asarray((root**2) @ self.noise)


def informed(before: Whitening, transform: FloatArray, turn: FloatArray) -> Whitening:
    """In the coordinates Bu, which are those of `transform`: B = `turn` (q, q), the inverse root of
    the information that is expected somewhere, so that the errors, which are of the frame in which
    it is I, stay what they are. What is known of the records is put into the public rows.
    """
    rows = before.rows @ before.frequency.T @ turn.T
    flat = np.eye(len(turn))
    return replace(before, transform=transform, rows=rows, information=flat, moment=flat)


@lru_cache(maxsize=1)
def _usable_roots(state: Whitening) -> tuple[FloatArray, FloatArray]:
    """F^½ and F^−½ (q, q), of F with eigenvalues that count 1½ of their error at least: a curvature
    that is too small would make steps too long. A fit asks at its first step and at its last.
    """
    values, vectors = eigen(state.information)
    least = np.maximum(_SURE_OF * (vectors**2).T @ state.error, _LEAST_FREQUENCY)
    up, down = powers(rebuild(np.maximum(values, least), vectors), (0.5, -0.5))
    return up, down


def sampled(state: Whitening, radius_squared: float, rows: float) -> Whitening:
    """After a round over a part of so many rows: τ with the relative sampling error of each axis'
    second moment.
    """
    return with_sampling(state, moment_spread(state.rows, radius_squared) / np.sqrt(rows))


def with_sampling(state: Whitening, relative: FloatArray) -> Whitening:
    """τ with a relative sampling error (q,) of each axis' second moment."""
    return replace(state, error=np.hypot(state.error, relative))


def unwhitened(start: Coordinates, radius_squared: float) -> Whitening:
    """Before any release: the public coordinates."""
    return unwhitened_of(start, clipped_moment(start.rows, radius_squared))


def unwhitened_of(start: Coordinates, moment: FloatArray) -> Whitening:
    """The same, where the clipped moment K (q, q) of the rows is known."""
    q = len(start.transform)
    flat = np.full(q, _PRIOR)
    return Whitening(
        start.transform, start.rows, start.free, np.eye(q), flat, flat, moment, np.ones(q), start
    )


def whitened(
    before: Whitening, released: Released, count: float, radius_squared: float, *, last: bool
) -> Whitening:
    """After a round. released: S·count with its noise. last: no further round follows."""
    q, free = len(before.transform), before.free
    K = clipped_moment(before.rows, radius_squared)
    root = power(K, -0.5, SMALLEST_MOMENT)
    noise = released.sd / count * np.sum(root**2, axis=1)
    gain = _gains(before.error, noise)
    E = root @ (released.values / count) @ root
    F = before.information + np.minimum.outer(gain, gain) * (E - before.information)
    F[:free, :free] /= _common_scale(F, K, radius_squared, free)
    values, V = eigen(F[:free, :free])
    seen = np.sqrt((V**2).T @ (gain * noise)[:free] ** 2)
    settled = without_noise(values, seen)
    few = np.zeros(free, dtype=bool)
    if last:
        few = _few_records(before, V, settled)
    if few.any():
        longest, squared = _longest(before.public[:, :free], radius_squared)
        few &= np.cumsum(few) <= len(squared)
        V = _turned_to(longest, V, few)
        settled = np.where(few, settled, np.diag(V.T @ F[:free, :free] @ V))
        seen = np.sqrt((V**2).T @ (gain * noise)[:free] ** 2)
    stretch = np.where(few, 1.0, _stretch(settled, seen, last=last))
    A = _matched(
        before.rows, free, radius_squared, np.asarray(np.linalg.inv(root)), F, (V * stretch) @ V.T
    )
    response = _response(stretch, np.sum((A[:, :free] @ V) ** 2, axis=0))
    if few.any():
        shorter = np.ones(free)
        shorter[few] = np.sqrt(squared[: int(few.sum())] / radius_squared)
        A[:, :free] = A[:, :free] @ (V * shorter) @ V.T
    turn = np.eye(q)
    turn[:free, :free] = V.T
    rest = np.sqrt((V**2).T @ ((1 - gain[:free]) * _PRIOR / 2) ** 2 / q)
    information = _moved(F, V, stretch, np.maximum(settled, seen / 2))
    return Whitening(
        transform=turn @ np.linalg.solve(A, before.transform),
        rows=before.rows @ turn.T,
        free=free,
        information=information,
        error=np.maximum(
            _after(gain, before.error, np.hypot(seen, rest) / stretch * response, free),
            _LEAST_ERROR,
        ),
        noise=np.append(seen / stretch, (gain * noise)[free:]),
        moment=turn @ K @ turn.T,
        stretch=np.append(np.where(few, _UNKNOWN, stretch), np.ones(q - free)),
        start=before.start,
    )


def whitened_as_expected(
    before: Whitening, moment: FloatArray, variances: FloatArray, sd: float
) -> Whitening:
    """After a round that has released the public rows' own moment K (q, q), in a forecast: E = I,
    so that nothing is stretched. variances: (q,) the diagonal of K⁻¹. sd: of the noise of a
    released entry, relative to the records.

    The free axes after a round are eigenvectors of I and noise, which may point anywhere: each is
    given what they have on average. What a round has seen, g ν, is below 1/√2 whatever its noise,
    so that no eigenvalue counts more than 1.
    """
    q, free = len(before.transform), before.free
    noise = sd * variances
    gain = _gains(before.error, noise)
    seen = np.sqrt(on_average((gain * noise) ** 2, free))
    rest = on_average(((1 - gain) * _PRIOR / 2) ** 2 / q, free)
    error = _after(gain, before.error, np.sqrt(seen**2 + rest)[:free], free)
    return replace(
        before,
        error=np.maximum(error, _LEAST_ERROR),
        noise=seen,
        moment=moment,
        stretch=np.ones(q),
    )


def on_average(values: FloatArray, free: int) -> FloatArray:
    """(q,) of the axes, the free ones with their mean."""
    means = np.array(values)
    means[:free] = np.mean(values[:free]) if free else 0.0
    return means


def _gains(error: FloatArray, noise: FloatArray) -> FloatArray:
    """(q,) of each axis, from what is known of it and the noise of a release, both (q,)."""
    return np.asarray(error**2 / (error**2 + noise**2 * min(len(noise), 8) / 2))


def _common_scale(F: FloatArray, K: FloatArray, radius_squared: float, free: int) -> float:
    """What a narrow radius says of all free coordinates' common length: nothing, as most rows are
    clipped. F is divided by its mean, so that only its shape moves the coordinates, whose lengths
    are then the public rows'. Rows that all are 0, as deviations of persons with one row, have no
    length.
    """
    length = float(np.trace(K[:free, :free]))
    if radius_squared >= _SHAPE_ONLY * len(K) or length < SMALLEST_MOMENT:
        return 1.0
    return max(float(np.trace(F[:free, :free] @ K[:free, :free])) / length, SMALLEST_MOMENT)


def _after(gain: FloatArray, before: FloatArray, free_error: FloatArray, free: int) -> FloatArray:
    """(q,) τ after a round: of the free axes as measured, of the rare ones what the gain leaves."""
    return np.append(free_error, (np.sqrt(1 - gain) * before)[free:])


def _stretch(values: FloatArray, noise: FloatArray, *, last: bool) -> FloatArray:
    """(free,) by what each direction's second moment is divided; 1 in the last round where it is
    not resolved.
    """
    least = _FLOOR * np.minimum(_SIGMAS * noise, 1.0)
    raised = np.where(np.maximum(values, least) < SMALLEST_MOMENT, 1.0, np.maximum(values, least))
    return np.where(values < _SIGMAS * noise, np.maximum(raised, 1.0), raised) if last else raised


def _few_records(before: Whitening, V: FloatArray, values: FloatArray) -> NDArray[np.bool_]:
    """(free,) the directions V, by their `values`, whose variance is that of a few records: they
    are made as long as the radius, so that their scores are no longer than the longest of the
    others, and no cut of whole scores is about them alone.

    A direction in which all records vary reads 1 once it has been stretched. One in which a share p
    of them differs reads pρ² however it is stretched. So the round before, which read s and has
    stretched by it, was clear of noise, and this one reads less than √s: the stretch has done less
    than half of what it was made for.
    """
    if before.start is None:
        return np.zeros(len(V), dtype=bool)
    along = np.exp((V**2).T @ np.log(before.stretch[: len(V)]))
    noise = np.sqrt((V**2).T @ before.noise[: len(V)] ** 2)
    clear = 1 - np.sqrt(along) > _FEW_CLEAR * noise
    return np.asarray((along < _STRETCHED) & clear & (values < np.sqrt(along)))


def _longest(rows: FloatArray, radius_squared: float) -> tuple[FloatArray, FloatArray]:
    """Directions (free, k) in which public rows (rows, free) are longer than the radius, the
    longest first, and their mean squares (k,).

    Few records are at values that public rows have, too, as the columns of these are independent:
    where they have been made so long that no moment tells how long, public rows do. And by
    directions of their own noise would turn them into the others.
    """
    squared, turn = eigen(rows.T @ rows / len(rows))
    long = squared > radius_squared
    return turn[:, long][:, ::-1], squared[long][::-1]


def _turned_to(longest: FloatArray, V: FloatArray, few: NDArray[np.bool_]) -> FloatArray:
    """V (free, free) with the first of the `longest` directions for its `few`."""
    k = int(few.sum())
    basis = np.linalg.qr(np.column_stack([longest[:, :k], V[:, ~few]]))[0]
    turned = np.empty_like(V)
    turned[:, few], turned[:, ~few] = basis[:, :k], basis[:, k:]
    return turned


def _response(stretch: FloatArray, squared: FloatArray) -> FloatArray:
    """(free,) by how much a relative error of the clipped moment grows in the squared length that
    explains it: the clipped moment of a long direction hardly responds to its length.
    """
    change = np.log(stretch)
    grown = np.log(np.maximum(squared, SMALLEST_MOMENT)) / np.where(
        np.abs(change) > _CHANGE, change, 1.0
    )
    return np.where(np.abs(change) > _CHANGE, np.clip(grown, 1.0, _MOST_GROWN), 1.0)


def _matched(
    rows: FloatArray,
    free: int,
    radius_squared: float,
    back: FloatArray,
    F: FloatArray,
    target: FloatArray,
) -> FloatArray:
    """A (q, q): the clipped moment of the public rows Au has the free block that was released.

    back: K^(1/2). target: (free, free) F's free block as it is to be reached.
    """
    q = len(F)
    wanted = F.copy()
    wanted[:free, :free] = target
    wanted = (back @ wanted @ back)[:free, :free]
    A = np.eye(q)
    for _ in range(_MATCHING if free else 0):
        K = clipped_moment(rows @ A.T, radius_squared)[:free, :free]
        if np.abs(K - wanted).max() <= _MATCHED:
            break
        up, down = powers(K, (0.5, -0.5), SMALLEST_MOMENT)
        A[:free] = up @ power(down @ wanted @ down, 0.5, SMALLEST_MOMENT**2) @ down @ A[:free]
    return A


def _moved(F: FloatArray, V: FloatArray, stretch: FloatArray, values: FloatArray) -> FloatArray:
    """F in the coordinates after a round, on the axes V."""
    free = len(stretch)
    moved = F.copy()
    moved[:free, free:] = (V / np.sqrt(stretch)).T @ F[:free, free:]
    moved[free:, :free] = moved[:free, free:].T
    moved[:free, :free] = np.diag(values / stretch)
    return moved
