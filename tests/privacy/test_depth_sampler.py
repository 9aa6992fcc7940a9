"""Draws from exp(−ηO) against numerical integration: several bases, symmetric, tied and few directions."""

import numpy as np
import pytest
from scipy import stats

from reticent_server.mechanisms import depth_draw
from reticent_server.mechanisms._sampler import exponentials
from reticent_server.numerics.depth_iqr import IqrProjections
from reticent_server.numerics.simplex_envelope import (
    affine_functions,
    envelope,
    first_simplex,
    public_simplex,
)

ETA = 3.0
DRAWS = 5000
BINS = {1: 12, 2: 5, 3: 3}
CELLS = {1: 4000, 2: 400, 3: 105}


def functions_of(name, d):
    """Affine functions of directions with locations and scales: the shapes that could go wrong."""
    rng = np.random.default_rng(d)
    directions = rng.normal(size=(max(12, 2 * d), d))
    if name == "few":
        directions = np.vstack([np.eye(d), np.arange(1.0, d + 1)])
    if name == "tied":
        data = rng.integers(-2, 3, (d, 41)).astype(float)
        whole = np.where(np.abs(directions) < 0.1, 1.0, np.rint(8 * directions))
        found = IqrProjections.measure(data, whole, 1)
        return affine_functions(whole, found.location, found.scale)
    if name == "degenerate":  # every function three times, and all of them meet in one point
        directions = np.tile(directions[: 2 * d + 2], (3, 1))
        return affine_functions(directions, np.zeros(len(directions)), np.ones(len(directions)))
    norms = np.sqrt((directions**2).sum(axis=1))
    location = (
        np.zeros(len(directions)) if name == "symmetric" else 0.3 * rng.normal(size=len(norms))
    )
    return affine_functions(
        directions, location * norms, norms * (1 + 0.5 * rng.random(len(norms)))
    )


BASES = {
    "linear program": first_simplex,
    "exchanged": lambda f: envelope(f, ETA),
    "public": public_simplex,
}


def draws(functions, simplex, number, eta=ETA):
    """Kept proposals, (d, number)."""
    found, have = [], 0
    while have < number:
        tau, points = depth_draw.propose(simplex, eta, 4000)
        excess = functions.largest(points) - (simplex.lowest + tau)
        assert excess.min() > -1e-9
        kept = points[:, exponentials(4000) >= eta * excess]
        found.append(kept)
        have += kept.shape[1]
    return np.concatenate(found, axis=1)[:, :number]


def p_value(sample, functions, eta=ETA):
    """χ² of the sample in bins of every coordinate, against sums of exp(−ηO) over a fine grid."""
    d = len(sample)
    reach = np.abs(sample).max() * 1.6 + 0.5
    step = 2 * reach / CELLS[d]
    axis = -reach + step * (np.arange(CELLS[d]) + 0.5)
    points = np.stack([a.ravel() for a in np.meshgrid(*[axis] * d, indexing="ij")])
    weights = np.exp(-eta * functions.largest(points)).reshape((CELLS[d],) * d)
    weights /= weights.sum()
    edges = []
    for k in range(d):
        others = tuple(j for j in range(d) if j != k)
        F = np.cumsum(weights.sum(axis=others))
        places = np.searchsorted(F, np.arange(1, BINS[d]) / BINS[d])
        edges.append(-reach + step * (places + 1))
    coarse = [np.searchsorted(e, axis) for e in edges]
    flat = np.ravel_multi_index(np.meshgrid(*coarse, indexing="ij"), (BINS[d],) * d).ravel()
    expected = np.bincount(flat, weights.ravel(), minlength=BINS[d] ** d)
    places = [np.searchsorted(e, row) for e, row in zip(edges, sample, strict=True)]
    seen = np.bincount(np.ravel_multi_index(places, (BINS[d],) * d), minlength=BINS[d] ** d)
    common = expected > 5e-3
    seen = np.append(seen[common], seen[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    kept = expected > 0
    return stats.chisquare(seen[kept], seen.sum() * expected[kept] / expected.sum()).pvalue


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("name", ["plain", "symmetric", "tied", "few", "degenerate"])
@pytest.mark.parametrize("basis", BASES)
def test_draws_have_the_density_whatever_the_basis(d, name, basis):
    functions = functions_of(name, d)
    sample = draws(functions, BASES[basis](functions), DRAWS)
    assert p_value(sample, functions) > 1e-7


@pytest.mark.parametrize("d", [1, 2, 3])
def test_another_eta_is_rejected(d):
    functions = functions_of("plain", d)
    for factor in (0.7, 1.3):
        sample = draws(functions, envelope(functions, ETA), DRAWS, ETA * factor)
        assert p_value(sample, functions) < 1e-12


def test_bases_differ_and_exchanges_keep_more():
    functions = functions_of("plain", 3)
    first, better = first_simplex(functions), envelope(functions, ETA)
    assert {tuple(a) for a in first.a} != {tuple(a) for a in public_simplex(functions).a}
    for simplex in (first, better, public_simplex(functions)):
        assert simplex.shares.min() > 0
        assert simplex.shares @ simplex.a == pytest.approx(np.zeros(3), abs=1e-12)

    def log_mass(simplex):
        M = np.vstack([simplex.a.T, np.ones(4)])
        return -ETA * simplex.lowest - np.linalg.slogdet(M)[1] - np.log(simplex.shares).sum()

    assert log_mass(better) <= log_mass(first)


@pytest.mark.parametrize("d", [5, 8])
def test_many_dimensions_keep_enough_of_the_proposals(d):
    rng = np.random.default_rng(d)
    data = np.rint(1e6 * rng.normal(size=(d, 4000)))
    directions = np.rint(1024 * rng.normal(size=(300, d)))
    found = IqrProjections.measure(data, directions, 1)
    x0 = np.linalg.lstsq(directions, found.location, rcond=None)[0]
    unit = np.median(found.scale) / 1024
    functions = affine_functions(directions * unit, found.location - directions @ x0, found.scale)
    eta = 20 * np.sqrt(d)
    simplex = envelope(functions, eta)
    tau, points = depth_draw.propose(simplex, eta, 20_000)
    excess = functions.largest(points) - (simplex.lowest + tau)
    assert np.exp(-eta * excess).mean() > {5: 0.01, 8: 0.0005}[d]


def test_a_single_draw_is_one_of_those_that_are_kept():
    functions = functions_of("plain", 2)
    simplex = public_simplex(functions)
    sample = np.array([depth_draw.standard_draw(functions, simplex, ETA) for _ in range(2500)]).T
    assert p_value(sample, functions) > 1e-7


def test_a_draw_is_made_in_the_coordinates_of_the_data():
    """Far from the origin and in other units: the same law, moved and stretched."""
    functions = functions_of("plain", 2)
    K = len(functions.b) // 2
    scale = 1 / np.sqrt((functions.a[:K] ** 2).sum(axis=1))
    directions, location = functions.a[:K] * scale[:, None], functions.b[:K] * scale
    far = np.array([1e6, -3e5])
    drawn = [
        depth_draw.draw(directions, 50 * location + directions @ far, 50 * scale, ETA)
        for _ in range(2500)
    ]
    assert p_value((np.array(drawn).T - far[:, None]) / 50, functions) > 1e-7
