# SPDX-License-Identifier: Apache-2.0
"""Persons of different lengths against each other, along released paths of a regression whose unit
has m rows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.schema import ABSENT, Schema, Unit
from reticent_server.domain.steps import Block, CountSum, GramSum, SumStep, VectorSum
from reticent_server.engine.block_sums import block_sums
from reticent_server.fitting.maps import ScoreMap
from reticent_server.fitting.person_scores import PersonLengthsMap, PersonScoreMap
from reticent_server.formula import parse_formula
from reticent_server.kinds.shared.linear.plan import plan_linear_regression
from reticent_server.mechanisms import noisy_sum, registry
from support.fits.regressions import drive, facts_of, numeric, profile_of, query, totals
from support.seeds import seeded

PERSONS, M, RHO = 40, 4, 5 * 10**12
COLUMNS = [numeric("x0"), numeric("x1"), numeric("y")]
FORMULA = "y ~ x0 + x1"


def panel(seed: Any = 3) -> Any:
    rng = seeded(seed)
    rows = np.arange(M)[None, :] < rng.integers(1, M + 1, (PERSONS, 1))
    table = {k: rng.standard_t(2, (PERSONS, M)) * rows for k in ("x0", "x1")}
    effect = rng.normal(size=(PERSONS, 1))
    y = np.clip(
        (table["x0"] - table["x1"] + effect + rng.normal(size=rows.shape)) * rows, -900, 900
    )
    return {k: v.ravel() for k, v in table.items()} | {"y": y.ravel()}, ~rows.ravel()


def planned(loss: Any = "huber") -> Any:
    table, absent = panel()
    present = {k: v[~absent] for k, v in table.items()}
    facts = facts_of(PERSONS * M, COLUMNS, profile_of(present, COLUMNS), M)
    design = parse_formula(FORMULA, facts.schema, None)
    return plan_linear_regression(facts, design, query(loss=loss), RHO)


def block_of(table: Any, absent: Any) -> Any:
    return Block(0, len(absent), table, {ABSENT: absent})


def with_person(rows: Any) -> Any:
    """The table with person 7's places filled by `rows` of (x0, x1, y), the others empty."""
    table, absent = panel()
    table, absent = {k: v.copy() for k, v in table.items()}, absent.copy()
    for place in range(M):
        here = 7 * M + place
        absent[here] = place >= len(rows)
        values = rows[place] if place < len(rows) else (0.0, 0.0, 0.0)
        for name, value in zip(("x0", "x1", "y"), values, strict=True):
            table[name][here] = value
    return block_of(table, absent)


FAR = [(a, b, c) for a in (-1000.0, 0.3) for b in (0.5, 1000.0) for c in (-1000.0, 0.0, 1000.0)]
NEAR = [(a, b, c) for a in (-3.0, 0.0, 3.0) for b in (-3.0, 0.0, 3.0) for c in (-900.0, 900.0)]
PERSONS_LIKE = [
    [],
    *([row] * M for row in NEAR),
    *([row] for row in FAR),
    *([row] * M for row in FAR),
    FAR[:M],
    FAR[4 : 4 + M],
]


def distance(part: Any, a: Any, b: Any) -> Any:
    return float(np.sqrt(np.sum((a - b).astype(float) ** 2))) / noisy_sum.sensitivity(part)


@pytest.mark.sample(4)
@pytest.mark.slow
@pytest.mark.parametrize("loss", ["huber", "squared"])
def test_persons_of_any_lengths_are_as_near_as_is_billed_and_some_sums_as_far(loss: Any) -> None:
    plan = planned(loss)
    steps = drive(plan.run(), block_of(*panel())).steps
    found = [[totals(step, with_person(rows)) for step in steps] for rows in PERSONS_LIKE]
    worst = {}
    for left in found:
        for right in found:
            for step, a, b in zip(steps, left, right, strict=True):
                for part, u, v in zip(step.parts, a, b, strict=True):
                    key = (type(part), part.person_rows)
                    worst[key] = max(worst.get(key, 0.0), distance(part, u, v))
    assert max(worst.values()) <= 1
    assert set(worst) >= {(VectorSum, M), (GramSum, M), (GramSum, 1), (CountSum, M)}
    assert worst[VectorSum, M] > 0.999, "two persons with opposite scores attain 2C"
    assert worst[GramSum, M] > 0.9, "and nearly orthogonal ones √2 C²"
    assert worst[CountSum, M] == pytest.approx(1)


@pytest.mark.slow
def test_all_steps_together_cost_what_is_charged() -> None:
    """Over the whole path: the persons that are farthest apart use no more than ρ of all parts."""
    plan = planned()
    steps = drive(plan.run(), block_of(*panel())).steps
    parts = [
        part for step in steps for part in step.parts
    ]  # a bound part by part is above the joint one
    assert sum(map(registry.rho, steps)) == plan.rho <= RHO
    assert all(part.unit_rows * part.person_rows == M for part in parts)
    found = [[t for s in steps for t in totals(s, with_person(rows))] for rows in PERSONS_LIKE]
    spent = 0.0
    for left in found:
        for right in found:
            each = (
                distance(p, a, b) ** 2 * p.rho for p, a, b in zip(parts, left, right, strict=True)
            )
            spent = max(spent, sum(each))
    assert 0.4 * plan.rho < spent <= plan.rho


def test_a_person_s_contributions_do_not_depend_on_anybody_else() -> None:
    """What others' blocks and lengths are does not matter: sums add up person by person."""
    plan = planned()
    steps = drive(plan.run(), block_of(*panel())).steps
    table, absent = panel()
    for step in steps:
        whole = block_sums(step, block_of(table, absent))
        pieces = None
        for k in range(PERSONS):
            cut = slice(k * M, (k + 1) * M)
            one = block_of({n: v[cut] for n, v in table.items()}, absent[cut])
            sums = block_sums(step, one)
            pieces = sums if pieces is None else [a + b for a, b in zip(pieces, sums, strict=True)]
        assert all(np.array_equal(a, b) for a, b in zip(whole, pieces, strict=True))


def test_the_order_of_a_person_s_rows_matters_to_rounding_only() -> None:
    plan = planned()
    step = drive(plan.run(), block_of(*panel())).steps[-1]
    rows = [FAR[0], (0.1, 0.2, 0.3), (1.0, -2.0, 0.5)]
    first, second = (totals(step, with_person(r)) for r in (rows, rows[::-1]))
    assert all(np.abs(a - b).max() <= 2 for a, b in zip(first, second, strict=True))


def test_places_without_a_row_hold_nothing_whatever_stands_there() -> None:
    plan = planned()
    table, absent = panel()
    other = {k: np.where(absent, 77.0, v) for k, v in table.items()}
    for step in drive(plan.run(), block_of(table, absent)).steps:
        pairs = zip(
            totals(step, block_of(table, absent)),
            totals(step, block_of(other, absent)),
            strict=True,
        )
        assert all(np.array_equal(a, b) for a, b in pairs)


def last_map(plan: Any) -> Any:
    step = drive(plan.run(), block_of(*panel())).steps[-1]
    assert isinstance(step.map_fn, PersonScoreMap)
    return step.map_fn


def test_clipped_persons_have_the_derivative_of_their_clipped_sum() -> None:
    """Σ k_u P_u J_u P_u of the roots is minus the symmetric derivative of C s/‖s‖ by θ (finite
    differences).
    """
    rows = last_map(planned("squared"))
    block = with_person([(0.5, 1.0, 2.0), (1.5, -0.4, 3.0)])
    person = slice(7 * M, 8 * M)
    _, roots, _ = rows(block)
    sums = PersonScoreMap(rows.scores, M, np.inf)(block)[0][:, 7]
    assert np.linalg.norm(sums) > 0
    tight = PersonScoreMap(rows.scores, M, float(np.linalg.norm(sums)) / 2)
    _, roots, _ = tight(block)
    v = (roots.vectors * roots.weights)[:, person]
    free = PersonScoreMap(rows.scores, M, np.inf)(block)[1]
    J = (free.vectors * free.weights)[:, person]
    J = J @ J.T
    s = sums / np.linalg.norm(sums)
    P = np.eye(len(s)) - np.outer(s, s)
    np.testing.assert_allclose(v @ v.T, 0.5 * P @ J @ P, rtol=1e-9, atol=1e-12)


def test_lengths_and_sums_are_those_of_rows_added_by_hand() -> None:
    rows = last_map(planned())
    table, absent = panel()
    score, *_ = ScoreMap(rows.scores.coding, rows.scores.point, rows.scores.shift)(
        block_of(table, absent)
    )
    by_hand = np.stack([
        (score.vectors * score.weights)[:, k * M : (k + 1) * M].sum(axis=1) for k in range(PERSONS)
    ])  # fmt: skip
    np.testing.assert_allclose(rows(block_of(table, absent))[0].T, by_hand, atol=1e-12)
    steps = drive(planned().run(), block_of(table, absent)).steps
    (lengths,) = (s for s in steps if isinstance(s.map_fn, PersonLengthsMap))
    codes = lengths.map_fn(block_of(table, absent))[0]
    assert codes.shape == (PERSONS,)
    assert totals(lengths, block_of(table, absent))[0].sum() == PERSONS


def test_contributions_that_are_not_of_whole_persons_are_refused() -> None:
    plan = planned()
    step = drive(plan.run(), block_of(*panel())).steps[-1]
    table, absent = panel()
    uneven = slice(0, PERSONS * M - 1)
    with pytest.raises(ValueError, match=r"persons|broadcast"):
        block_sums(step, block_of({k: v[uneven] for k, v in table.items()}, absent[uneven]))


def test_a_row_s_contribution_is_not_taken_for_a_person_s() -> None:
    part = VectorSum(3, 1.0, RHO, 1, M)
    step = drive(planned().run(), block_of(*panel())).steps[-1]
    of_rows = SumStep("rows", (part,), _FirstOf(step.map_fn.scores))
    with pytest.raises(ValueError, match="not those of whole persons"):
        block_sums(of_rows, block_of(*panel()))


@dataclass(frozen=True)
class _FirstOf:
    rows: ScoreMap

    def __call__(self, block: Any) -> Any:
        return self.rows(block)[:1]


def test_the_schema_of_the_attack_has_persons_with_many_rows() -> None:
    assert Schema(tuple(COLUMNS), Unit("person", M)).unit.many_rows
