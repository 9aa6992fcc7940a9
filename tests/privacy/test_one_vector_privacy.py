# SPDX-License-Identifier: Apache-2.0
"""Parts of one vector, attacked together: no two records lose more than their joint price, and a
pair loses all of it.

What a pair loses is computed from the integer sums of the step as the engine encodes it, and from
the scales of the noise that is drawn, so that a price that is too low, a meat of other vectors and
a masked record that contributes all show.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from reticent_server.certificate.scales import drawn_scales
from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.scratch import FRESH
from reticent_server.domain.steps import CountSum, GramSum, OneVector, Scaled, SumStep, VectorSum
from reticent_server.mechanisms import one_vector, registry
from reticent_server.mechanisms.quantise import GRAM_BITS, granule
from support.seeds import seeded

UNIT = RHO_UNITS // 100


def step_of(
    d: Any,
    vector: int = 0,
    meat: int = 0,
    curvature: int = 0,
    used: int = 0,
    *,
    signed: bool = False,
    unit_rows: int = 1,
    clip: float = 1.3,
) -> SumStep:
    """A step of the parts that have a ρ, in hundredths of RHO_UNITS."""
    parts = {
        "vector": vector and VectorSum(d, clip, int(vector * UNIT), unit_rows),
        "meat": meat and GramSum(d, clip, int(meat * UNIT), unit_rows),
        "curvature": curvature and GramSum(d, 0.7, int(curvature * UNIT), unit_rows, signed),
        "used": used and CountSum(1, int(used * UNIT), unit_rows),
    }
    names = [name for name, part in parts.items() if part]
    joint = OneVector(**{name: k for k, name in enumerate(names)})
    return SumStep("joint", tuple(parts[name] for name in names), lambda _: (), joint=joint)


def contributions(step: Any, vectors: Any, alpha: Any, beta: Any, codes: Any = None) -> Any:
    joint, found = step.joint, [None] * len(step.parts)
    for place, weights in ((joint.vector, alpha), (joint.meat, alpha), (joint.curvature, beta)):
        if place is not None:
            found[place] = Scaled(vectors, weights)
    if joint.used is not None:
        found[joint.used] = np.zeros(vectors.shape[1]) if codes is None else codes
    return found


def weighted(step: Any, vectors: Any, alpha: Any, beta: Any, codes: Any = None) -> Any:
    """(rows, entries) what each record adds, in units in which a squared distance is a loss in
    RHO_UNITS.
    """
    rows = []
    given_ = contributions(step, vectors, alpha, beta, codes)
    scales = None
    for i in range(vectors.shape[1]):
        x = np.ascontiguousarray(vectors[:, [i]])
        one = [Scaled(x, c.weights[[i]]) if isinstance(c, Scaled) else c[[i]] for c in given_]
        sums = registry.encode_all(step.parts, one, FRESH, step.joint)
        scales = scales or [drawn_scales(p, s) for p, s in zip(step.parts, sums, strict=True)]
        rows.append(np.concatenate([(s / z).ravel() for s, z in zip(sums, scales, strict=True)]))
    return np.array(rows) * np.sqrt(RHO_UNITS / 2)


def worst(points: Any) -> float:
    squares = (points**2).sum(axis=1)
    return float((squares[:, None] + squares - 2 * points @ points.T).max())


def plane(d: int = 2, angles: int = 120) -> tuple[Any, Any, Any]:
    """Records at all angles of a plane, with every sign and length of α and β that is an end of
    what they may be.
    """
    turns = np.linspace(0, np.pi, angles, endpoint=False)
    pairs = list(product((-9.0, 9.0, 0.0), (0.0, -9.0, 9.0)))
    u = np.zeros((d, angles * len(pairs)))
    u[0], u[1] = np.repeat(np.cos(turns), len(pairs)), np.repeat(np.sin(turns), len(pairs))
    alpha, beta = np.tile(np.array(pairs).T, angles)
    return u, alpha, beta


MIXES = {
    "a meat that is free": (2, 20, 5),
    "a meat of half": (2, 20, 10),
    "a meat of twice": (3, 10, 20),
    "a Jacobian": (2, 20, 0, 4),
    "a large Jacobian": (2, 10, 0, 30),
    "all": (2, 30, 4, 6),
    "all, with more matrices": (3, 10, 8, 12),
    "all, with a large meat": (2, 10, 30, 2),
    "a matrix alone": (2, 0, 0, 10),
}
LOOSE = ("all, with more matrices", "all, with a large meat")
"""With a signed Jacobian whose own worst case, and the vector's, are not at the angle at which the
meat is worst.
"""


@pytest.mark.slow
@pytest.mark.sample(8)
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("name", MIXES)
def test_no_pair_loses_more_than_the_joint_price_and_one_loses_all_of_it(
    name: str, signed: bool
) -> None:
    signed = signed and len(MIXES[name]) > 3
    step = step_of(*MIXES[name], signed=signed)
    price = registry.rho(step)
    least = 0.8 if signed and name in LOOSE else 0.99
    assert least * price < worst(weighted(step, *plane(MIXES[name][0]))) <= price
    assert price <= sum(part.rho for part in step.parts)


COUNTED = {
    "a count that is free": (2, 0, 0, 10, 4),
    "a count that is not": (2, 0, 0, 10, 8),
    "a count with all": (2, 10, 4, 4, 9),
    "a count with a vector": (3, 10, 0, 0, 9),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("name", COUNTED)
def test_a_record_that_is_counted_and_one_that_is_not(name: str, signed: bool) -> None:
    """A record that the count leaves out contributes nothing, whatever its vector."""
    step = step_of(*COUNTED[name], signed=signed and COUNTED[name][3] > 0)
    u, alpha, beta = plane(COUNTED[name][0], 40)
    codes = np.tile([0.0, -1.0, np.nan, 1.0], u.shape[1])[: u.shape[1]]
    points = weighted(step, u, alpha, beta, np.roll(codes, 1) if u.shape[1] % 2 else codes)
    every = np.vstack([points, weighted(step, u, alpha, beta)])
    assert 0.99 * registry.rho(step) < worst(every) <= registry.rho(step)
    np.testing.assert_array_equal(points[codes != 0], 0)


def test_a_meat_within_a_quarter_and_a_count_within_half_are_free() -> None:
    assert one_vector.rho(3, vector=10**12, meat=10**12 // 4) < 10**12 * 1.004
    assert one_vector.rho(3, curvature=10**12, used=10**12 // 2) == pytest.approx(10**12, rel=1e-9)
    assert one_vector.rho(3, vector=10**12) == 10**12
    assert one_vector.rho(3, vector=5, meat=7, curvature=9, used=2) <= 23


def test_the_price_grows_with_every_part_and_with_all_of_them_alike() -> None:
    rng = seeded(0)
    names = ("vector", "meat", "curvature", "used")
    for _ in range(300):
        amounts = dict(zip(names, (int(v) for v in rng.integers(1, 10**12, 4)), strict=True))
        price = one_vector.rho(4, **amounts)
        for name in names:
            assert one_vector.rho(4, **(amounts | {name: amounts[name] * 11 // 10})) >= price
        whole = one_vector.rho(4, **{name: 7 * a for name, a in amounts.items()})
        assert whole == pytest.approx(7 * price, rel=1e-9)


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("unit_rows", [1, 3])
def test_all_rows_of_a_unit_together(unit_rows: int) -> None:
    step = step_of(2, 20, 10, 5, unit_rows=unit_rows)
    points = weighted(step, *plane()) * unit_rows
    assert 0.99 * registry.rho(step) < worst(points) <= registry.rho(step)


wild = st.floats(allow_nan=True, allow_infinity=True, width=64)


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("signed", [False, True])
def test_no_pair_of_any_numbers_loses_more(signed: bool) -> None:
    step = step_of(2, 20, 8, 6, 5, signed=signed)

    @settings(max_examples=150, deadline=None)
    @given(arrays(float, (2, 6), elements=wild), arrays(float, (3, 6), elements=wild))
    def search(vectors: Any, weights: Any) -> None:
        alpha, beta, codes = weights
        assert worst(weighted(step, vectors, alpha, beta, codes)) <= registry.rho(step)

    search()


@pytest.mark.parametrize("scale", [1e305, 1e307, 1.7e308])
def test_a_meat_is_that_of_the_vectors_integers_where_weights_overflow(scale: float) -> None:
    """Of one and the other the steps differ by 2¹¹: alone, one could be finite where the other is
    not.
    """
    step = step_of(2, 20, 5)
    x = np.array([[1.0, 1.0, -1.0], [0.0, 0.5, 0.0]])
    weights = np.array([scale, scale, scale])
    points = weighted(step, x, weights, weights)
    assert worst(points) <= registry.rho(step)


@pytest.mark.parametrize("d", [1, 2, 7, 60])
def test_a_meats_integers_are_within_their_limit(d: int) -> None:
    rng = seeded(d)
    step = step_of(d, 20, 5, clip=0.37)
    for _ in range(200):
        x = rng.choice([rng.normal(size=(d, 1)), np.ones((d, 1)), rng.integers(-1, 2, (d, 1))])
        sums = registry.encode_all(
            step.parts,
            contributions(step, x.astype(float), np.array([50.0]), None),
            FRESH,
            step.joint,
        )
        assert np.trace(sums[1]) <= 4**GRAM_BITS


def test_a_meat_does_not_read_a_contribution_of_its_own() -> None:
    step, (u, alpha, beta) = step_of(2, 20, 10), plane(angles=5)
    given_ = contributions(step, u, alpha, beta)
    sums = registry.encode_all(step.parts, given_, FRESH, step.joint)
    given_[1] = Scaled(u[::-1].copy(), beta)
    again = registry.encode_all(step.parts, given_, FRESH, step.joint)
    np.testing.assert_array_equal(sums[1], again[1])


def test_the_meat_is_that_of_the_contributions() -> None:
    rng = seeded(3)
    step, v = step_of(3, 20, 10), rng.normal(size=(3, 400)) / 4
    given_ = contributions(step, v, np.ones(400), None)
    sums = registry.encode_all(step.parts, given_, FRESH, step.joint)
    found = sums[1] * granule(step.parts[1]) ** 2
    np.testing.assert_allclose(found, v @ v.T, atol=0.02)


def test_parts_that_are_not_of_one_vector_are_refused() -> None:
    step, (u, alpha, beta) = step_of(2, 20, 0, 10), plane(angles=3)
    given_ = contributions(step, u, alpha, beta)
    given_[1] = Scaled(u.copy(), beta)
    with pytest.raises(TypeError, match="one array"):
        registry.encode_all(step.parts, given_, FRESH, step.joint)
    given_[1] = u
    with pytest.raises(TypeError, match="weights"):
        registry.encode_all(step.parts, given_, FRESH, step.joint)


@pytest.mark.parametrize(
    ("parts", "joint"),
    [
        ((VectorSum(2, 1.0, 5), GramSum(3, 1.0, 5)), OneVector(vector=0, curvature=1)),
        ((VectorSum(2, 1.0, 5), GramSum(2, 1.1, 5)), OneVector(vector=0, meat=1)),
        ((VectorSum(2, 1.0, 5), GramSum(2, 1.0, 5, signed=True)), OneVector(vector=0, meat=1)),
        ((GramSum(2, 1.0, 5),), OneVector(meat=0)),
        ((GramSum(2, 1.0, 5), CountSum(2, 5)), OneVector(curvature=0, used=1)),
        ((CountSum(1, 5),), OneVector(used=0)),
        ((GramSum(2, 1.0, 5),), OneVector(vector=0)),
    ],
)
def test_a_price_of_parts_that_are_not_joint_is_refused(parts: tuple[Any, ...], joint: Any) -> None:
    with pytest.raises(ValueError, match="vector"):
        registry.rho(SumStep("joint", parts, lambda _: (), joint=joint))
