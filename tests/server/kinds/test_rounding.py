# SPDX-License-Identifier: Apache-2.0
"""Rounding to steps, which is the same for all records of one value, stays below the noise.

Releases are constructed: the exact integers of a small block, as many times as the table has it,
and no noise. A billion records are arithmetic so.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.steps import GramSum, PowerSum, Released, SumStep, VectorSum
from reticent_server.kinds import KINDS
from reticent_server.mechanisms import _sampler, noisy_sum, power_sum, registry
from reticent_server.mechanisms.quantise import exactly, granule, norm_limit, quantise
from support.kinds.named_tests import offer
from support.kinds.recipes import block_of, facts_of, numeric
from support.seeds import seeded

BILLION = 10**9
PROOFS = (Path(__file__).parents[3] / "docs/proofs.md").read_text("utf-8")
SEEN = 0.25  # of a standard error
LEVELS = Column("g", ColumnKind.CATEGORICAL, 0.0, 1.0, ("a", "b"))


def whole(name: str, lower: float, upper: float) -> Column:
    return Column(name, ColumnKind.INTEGER, lower, upper)


def repeated(plan: Any, block: Any, n: int) -> Any:
    """The plan's reply, without noise, on a table that holds the block n/rows times."""
    recipe = plan.run()
    step, times = next(recipe), n // block.rows
    assert times * block.rows == n
    while True:
        try:
            step = recipe.send(tuple(_sums(step, block, times)))
        except StopIteration as stop:
            return stop.value


def _sums(step: SumStep, block: Any, times: int) -> Sequence[Released]:
    values = step.map_fn(block)
    for part, contributions in zip(step.parts, values, strict=True):
        total = registry.encode(part, contributions).astype(float) * times
        assert np.abs(total).max() < 2**61  # what the sampler takes
        yield Released(total * noisy_sum._unit(part), noisy_sum.noise_sd(part))


def planned(kind: str, columns: Sequence[Column], n: int, epsilon: float, **fields: Any) -> Any:
    found = next(k for k in KINDS if k.name == kind)
    return found.plan(facts_of(n, columns), found.query(**fields), offer(epsilon))


AGES = np.array([18.0, 18, 18, 31, 31, 90, 18, 64])
GROUPS = np.array([0.0, 0, 0, 0, 0, 1, 1, 1])
WEIGHTS = np.array([1.0, 2, 2, 2, 1, 1, 2, 2])
PERSONS = block_of(k=AGES, g=GROUPS, b=(AGES > 20).astype(float), w=WEIGHTS)
COLUMNS = (whole("k", 0.0, 120.0), LEVELS, whole("b", 0.0, 1.0), numeric("w", 0.0, 2.0))


@pytest.mark.parametrize("epsilon", [1.0, 100.0])
@pytest.mark.parametrize("column", ["k", "b"])
def test_means_of_whole_numbers_are_right_in_a_billion_records(column: str, epsilon: float) -> None:
    """By group, described, and tested against the table's own mean."""
    values = PERSONS.columns[column]
    plan = planned("mean", COLUMNS, BILLION, epsilon, column=column, by="g")
    for group, found in enumerate(repeated(plan, PERSONS, BILLION).groups):
        error = abs(found.value - values[group == GROUPS].mean())
        assert error < SEEN * found.privacy_standard_error
    plan = planned("t_test", COLUMNS, BILLION, epsilon, column=column, popmean=values.mean())
    assert abs(repeated(plan, PERSONS, BILLION).statistic) < SEEN
    plan = planned("anova", COLUMNS, BILLION, epsilon, column=column, group="g")
    for group, found in enumerate(repeated(plan, PERSONS, BILLION).groups):
        error = abs(found.mean - values[group == GROUPS].mean())
        assert error < SEEN * found.standard_error


def test_described_means_are_right_in_a_billion_records() -> None:
    quartiles = {"k": (18.0, 24.5, 40.0)}
    facts = facts_of(BILLION, COLUMNS, quartiles=quartiles)
    kind = next(k for k in KINDS if k.name == "describe")
    plan = kind.plan(facts, kind.query(columns=("k",), by="g"), offer(100.0))
    for found in repeated(plan, PERSONS, BILLION).columns[0].groups[1:]:
        own = AGES[LEVELS.levels.index(found.level) == GROUPS]
        assert abs(found.mean.value - own.mean()) < SEEN * found.mean.standard_error


@pytest.mark.parametrize("fields", [{}, {"where": "b == 1"}, {"by": "g"}])
def test_sums_are_right_in_a_billion_records(fields: Any) -> None:
    """Their intervals are for this table, so that the noise alone widens them."""
    plan = planned("sum", COLUMNS, BILLION, 10.0, column="k", **fields)
    found = repeated(plan, PERSONS, BILLION)
    if "by" in fields:
        for group, each in enumerate(found.groups):
            right = AGES[group == GROUPS].sum() * (BILLION // 8)
            assert abs(each.value - right) < SEEN * each.standard_error
        return
    used = PERSONS.columns["b"] == 1 if fields else np.ones(8, bool)
    right = AGES[used].sum() * (BILLION // 8)
    assert abs(found.value - right) < SEEN * found.standard_error


@pytest.mark.parametrize("fields", [{"weights": "w"}, {"strata": "g"}, {"where": "b == 1"}])
def test_numbers_of_records_out_of_use_are_right(fields: Any) -> None:
    """Each is −1 beside the weights' sum n, and is taken for a whole one."""
    plan = planned("mean", COLUMNS, BILLION, 10.0, column="k", **fields)
    found = repeated(plan, PERSONS, BILLION)
    weights = WEIGHTS if "weights" in fields else np.ones(8)
    used = PERSONS.columns["b"] == 1 if "where" in fields else np.ones(8, bool)
    right = np.average(AGES[used], weights=weights[used])
    assert abs(found.value - right) < SEEN * found.standard_error


def test_wide_bounds_do_not_bias_means() -> None:
    """Incomes declared up to ten million: all are near the lower end, z near −1, and the weight of
    a record, rounded by itself, would shift all means by a fiftieth of a thousandth of the width.
    """
    rng = seeded(7)
    incomes = np.exp(rng.normal(10, 0.6, 20_000)).round()
    group = rng.integers(0, 2, 20_000).astype(float)
    block, n = block_of(k=incomes, g=group), 200_000
    columns = (whole("k", 0.0, 1e7), LEVELS)
    plan = planned("mean", columns, n, 50.0, column="k", by="g")
    for code, found in enumerate(repeated(plan, block, n).groups):
        assert abs(found.value - incomes[group == code].mean()) < SEEN * found.standard_error
    plan = planned("t_test", columns, n, 50.0, column="k", popmean=incomes.mean())
    assert abs(repeated(plan, block, n).statistic) < SEEN


def test_a_number_that_a_step_divides_is_never_rounded() -> None:
    """And the clip is lengthened by less than a step of it."""
    for part in (VectorSum(3, 1.7, 10**9), GramSum(3, 1.7, 10**9)):
        for number in (0.31, 1.0, 1.7):
            exact = exactly(part, number)
            q = quantise(exact, np.array([[number], [0.0], [0.0]]))
            assert q[0, 0] * granule(exact) == pytest.approx(number, rel=1e-14)
            assert part.clip <= exact.clip <= part.clip * (1 + 2 * granule(part) / number)
        assert exactly(part, granule(part)) is part


HALF_RHO = RHO_UNITS // 2
FIGURES = {
    "vectors": (VectorSum(1, 1.0, HALF_RHO), 27, 3e8, 0.002),
    "powers": (PowerSum(((0.0, 1.0),), HALF_RHO), 25, 7e7, 0.009),
    "Gram sums": (GramSum(2, 1.0, HALF_RHO), 16, 7e4, 5.0),
    "Gram sums of persons": (GramSum(2, 1.0, HALF_RHO, person_rows=2, whole=True), 14, 2e4, 20.0),
}


@pytest.mark.parametrize("name", FIGURES)
def test_rounding_is_as_large_as_the_page_of_proofs_says(name: str) -> None:
    """Half a step of each record beside the noise of an entry (off the diagonal of a Gram sum), and
    beside the sampling error of values that vary by a tenth of the clip."""
    part, bits, reached, share = FIGURES[name]
    gram = isinstance(part, GramSum)
    step = power_sum.granule(part) if isinstance(part, PowerSum) else granule(part)
    noise = noisy_sum.noise_sd(part) / (np.sqrt(2) if gram else 1)
    assert step / 2 == pytest.approx(2.0**-bits, rel=2e-3)
    assert noise / (step / 2) == pytest.approx(reached, rel=0.25)
    assert BILLION * step / 2 / (0.1 * np.sqrt(BILLION)) == pytest.approx(share, rel=0.2)
    row = next(line for line in PROOFS.splitlines() if line.startswith(f"| {name} |"))
    size, power = f"{reached:.0e}".split("e+0")
    exponent = power.translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    assert f"| {size}·10{exponent} | {share:g} |".replace("| 0.", "| .") in row


def test_sums_of_the_largest_table_are_within_the_sampler_s_integers() -> None:
    """2³¹ records, all at the clip."""
    for part in (VectorSum(3, 1.0, 1), GramSum(3, 1.0, 1)):
        each = norm_limit(part) ** (2 if isinstance(part, GramSum) else 1)
        assert 2**31 * each <= _sampler._LIMIT
        assert noisy_sum.MAX_BLOCK_ROWS * each < 2**53
