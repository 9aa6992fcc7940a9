# SPDX-License-Identifier: Apache-2.0
"""Profiles in which every person counts once: a search over pairs of persons, and where ρ goes.

A person has none to m rows, each in one of the bins, missing, out of the bins or no number at all;
the distance of what two of them add is compared with the sensitivity that is charged, which two
persons with all rows in different bins attain for one and two bins.
"""

from itertools import combinations_with_replacement

import numpy as np
import pytest

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.schema import ABSENT, Column, ColumnKind
from reticent_server.domain.steps import Block, FloatArray, QuantileTree, VectorSum
from reticent_server.fitting.column_measures import Measure, allocated, measures
from reticent_server.kinds.profile.plan import plan_profile
from reticent_server.mechanisms import noisy_sum, quantise
from support.attacks.privacy_losses import step_loss
from support.fits.regressions import facts_of, numeric
from support.seeds import seeded

M = 3
X = numeric("x", -9, 9)
MAY_MISS = Column("x", ColumnKind.NUMERIC, -9, 9, (), ("NA",))


def levels(count: int, *, missing: bool = False) -> Column:
    names = tuple("abcdefgh"[:count])
    return Column("g", ColumnKind.CATEGORICAL, 0, count - 1, names, ("?",) if missing else ())


def persons(bins: int) -> Block:
    """All persons of up to M rows with codes −1 to bins, half of the rows of the last code of no
    number; one after the other.
    """
    codes: list[float] = []
    absent: list[bool] = []
    for rows in combinations_with_replacement(range(-2, bins + 1), M):
        codes += [np.nan if c == bins else float(c) for c in rows]
        absent += [c == -2 for c in rows]
    return Block(0, len(codes), {"g": np.array(codes)}, {ABSENT: np.array(absent)})


@pytest.mark.parametrize("bins", [2, 3, 6])
def test_what_two_persons_add_is_no_further_apart_than_is_charged(bins: int) -> None:
    (measure,) = measures(levels(bins))
    part = measure.part(RHO_UNITS, M, 100, (0.5,))
    assert isinstance(part, VectorSum)
    assert (part.person_rows, part.unit_rows) == (M, 1)
    v = measure.contributions(persons(bins), None, M)
    assert np.linalg.norm(v, axis=0).max() <= part.clip * (1 + 1e-12)
    apart = np.linalg.norm(v[:, :, None] - v[:, None, :], axis=0).max()
    assert apart <= noisy_sum.sensitivity(part) * quantise.granule(part)
    assert apart == pytest.approx(np.sqrt(2)), "persons with all rows in two bins"
    if bins == 2:
        assert apart > 0.999 * noisy_sum.sensitivity(part) * quantise.granule(part)


def test_missing_cells_are_a_share_of_a_person_s_rows() -> None:
    quantiles, missing = measures(MAY_MISS)
    part = missing.part(RHO_UNITS, M, 100, (0.5,))
    gone = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0], dtype=bool)
    absent = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1], dtype=bool)
    block = Block(0, 9, {"x": np.zeros(9)}, {"x": gone, ABSENT: absent})
    found = missing.contributions(block, None, M)
    np.testing.assert_allclose(found, [[0.5, 0.0, -0.5]])
    assert np.ptp(found) == pytest.approx(2 * part.clip), "all missing, and nothing"
    assert quantiles.contributions(block, None, M).shape == (M, 3)


@pytest.mark.parametrize("columns", [(X, levels(2)), (MAY_MISS, levels(5, missing=True))])
def test_neighbours_lose_what_is_charged_and_no_more(columns: tuple[Column, ...]) -> None:
    facts = facts_of(4, list(columns), None, M).of_places()
    plan, rng = plan_profile(facts, RHO_UNITS // 10), seeded(1)
    step = next(plan.run())

    def table(own: FloatArray, x: float) -> Block:
        values = {"x": rng.normal(size=4 * M), "g": rng.integers(0, 2, 4 * M) * 1.0}
        values["x"][:M], values["g"][:M] = x, own
        missing = {c.name: np.zeros(4 * M, dtype=bool) for c in columns if c.may_be_missing}
        return Block(0, 4 * M, values, missing | {ABSENT: np.zeros(4 * M, dtype=bool)})

    state = rng.bit_generator.state
    one = table(np.zeros(M), -5.0)
    rng.bit_generator.state = state
    other = table(np.ones(M), 5.0)
    loss = step_loss(step, one, other)
    assert loss <= plan.rho <= RHO_UNITS // 10
    if len(step.parts) == 2:
        assert loss > 0.99 * plan.rho


@pytest.mark.parametrize("unit_rows", [1, 8])
@pytest.mark.parametrize("rho", [40, 10**6, 10**9, 10**11])
def test_every_rho_is_divided_wholly_and_never_exceeded(rho: int, unit_rows: int) -> None:
    planned = [
        m
        for k in range(12)
        for m in (*measures(X), *measures(MAY_MISS), *measures(levels(k % 6 + 2)))
    ]
    given = allocated(planned, rho, unit_rows, 3000)
    assert min(given) >= 1
    assert sum(given) <= max(rho, len(planned))
    assert rho < 10**6 or sum(given) >= rho - 2 * len(planned)


def test_quartiles_of_every_column_come_before_tails() -> None:
    """With twice of what resolves all columns all are; with half of it as many as can be, in the
    order of the schema.
    """
    planned: list[Measure] = [m for _ in range(10) for m in measures(X)]
    n, m = 5000, 8
    need = planned[0].needs(m, n)

    def probabilities(rho: int) -> list[int]:
        given = allocated(planned, rho, m, n)
        parts = [
            p.part(r, m, n, (0.01, 0.25, 0.5, 0.75, 0.99))
            for p, r in zip(planned, given, strict=True)
        ]
        return [len(p.probabilities) for p in parts if isinstance(p, QuantileTree)]

    assert min(probabilities(10 * need + 20)) == 3
    assert probabilities(5 * need + 20) == [3] * 5 + [1] * 5
    assert min(probabilities(10**4 * need)) == 5
    enough, less = (planned[0].part(r, m, n, (0.25, 0.5, 0.75)) for r in (need, need * 9 // 10))
    assert isinstance(enough, QuantileTree)
    assert isinstance(less, QuantileTree)
    assert (len(enough.probabilities), less.probabilities) == (3, (0.5,))
