# SPDX-License-Identifier: Apache-2.0
"""Descriptions against numpy on the same table, their intervals, and what they say of tables that
tell little.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, Profile
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.errors import InvalidPrivacy, InvalidQuery
from reticent_server.kinds import registry
from reticent_server.kinds.describe.cells import (
    Cells,
    quartiles,
    share,
    shown_edges,
    whole_quartiles,
)
from reticent_server.kinds.describe.kind import Describe
from reticent_server.kinds.describe.moments import NoisyMoments
from reticent_server.kinds.mean.kind import Mean
from reticent_server.kinds.shared.ranges import ClipRange
from support.fits.regressions import whole
from support.kinds.named_tests import PEOPLE, offer, people, people_facts
from support.kinds.recipes import facts_of, outcome
from support.seeds import seeded

CLEAR = 10**5
"""ε at which noise is below what is compared here."""


def described(
    query: Any, table: Any, missing: Any = None, facts: Any = None, epsilon: Any = CLEAR
) -> Any:
    n = len(table["y"])
    gone = np.zeros(n, bool) if missing is None else missing
    table = table | {"m": np.where(gone, 0.0, table["m"])}
    plan = registry.plan(facts or people_facts(n), query, offer(epsilon))
    return outcome(plan, whole(table, {"m": gone}))


def column(found: Any, name: Any) -> Any:
    return next(c for c in found.columns if c.column == name)


def test_without_noise_to_speak_of_it_is_what_numpy_says() -> None:
    table, gone = people(20_000), seeded(5).random(20_000) < 0.1
    found = described(Describe(), table, gone)
    assert [size.number for size in found.sizes] == pytest.approx([20_000])
    for name in "yxk":
        (group,) = column(found, name).groups
        values = table[name]
        assert group.mean.value == pytest.approx(values.mean(), abs=0.005)
        assert group.standard_deviation.value == pytest.approx(values.std(), rel=0.01)
        known = np.quantile(values, (0.25, 0.5, 0.75))
        assert [q.value for q in group.quartiles] == pytest.approx(known, abs=0.02)
    (group,) = column(found, "g").groups
    assert [s.value for s in group.shares] == pytest.approx(
        np.bincount(table["g"].astype(int)) / 20_000, abs=1e-3
    )
    (group,) = column(found, "m").groups
    assert group.missing.value == pytest.approx(gone.mean(), abs=1e-3)
    assert group.number == pytest.approx(20_000 - gone.sum(), abs=5)
    assert group.mean.value == pytest.approx(table["m"][~gone].mean(), abs=2e-3)


def test_groups_have_figures_of_their_own_and_all_records_come_first() -> None:
    table = people(20_000)
    found = described(Describe(("y", "b"), "g", "x > 0"), table)
    used = table["x"] > 0
    masks = [used, *(used & (table["g"] == code) for code in range(3))]
    assert [size.level for size in found.sizes] == ["all", "a", "b", "c"]
    for size, y, b, mask in zip(
        found.sizes, *(column(found, name).groups for name in "yb"), masks, strict=True
    ):
        assert size.number == pytest.approx(mask.sum(), rel=1e-2)
        assert y.number == pytest.approx(mask.sum(), rel=1e-2)
        assert y.mean.value == pytest.approx(table["y"][mask].mean(), abs=0.01)
        assert y.quartiles[1].value == pytest.approx(np.median(table["y"][mask]), abs=0.05)
        assert b.shares[1].value == pytest.approx(table["b"][mask].mean(), abs=0.01)
        assert sum(y.counts) == pytest.approx(mask.sum(), rel=1e-2)
    first, *groups = column(found, "y").groups
    for group in groups:
        assert first.count_standard_error == pytest.approx(3**0.5 * group.count_standard_error)


def test_bins_hold_what_numpy_counts() -> None:
    table = people(5_000)
    found = column(described(Describe(("y",)), table), "y")
    inner = np.searchsorted(found.edges[1:-1], table["y"], side="right")
    assert found.groups[0].counts == pytest.approx(
        np.bincount(inner, minlength=len(found.edges) - 1), abs=1
    )
    assert found.clipped == (-10.0, 10.0)
    assert -10 < found.edges[0] < found.edges[-1] < 10


def long_tailed(seed: int = 0) -> Any:
    """20,000 records, y the quantiles of a lognormal law of sigma 1.5 within bounds far beyond the
    likely range, and their facts.
    """
    z = norm.ppf((seeded(seed).permutation(20_000) + 0.5) / 20_000)
    y = np.clip(np.exp(1.5 * z), 0.0, 500.0)
    known = {"y": ColumnProfile(quantiles=tuple(np.quantile(y, PROFILE_PROBABILITIES)))}
    columns = (Column("y", ColumnKind.NUMERIC, 0.0, 500.0), *PEOPLE[1:])
    return people(20_000) | {"y": y}, replace(facts_of(20_000, columns), profile=Profile(known))


def test_mean_and_standard_deviation_are_of_the_whole_of_a_long_tail() -> None:
    table, facts = long_tailed()
    y = table["y"]
    found = column(described(Describe(("y",)), table, facts=facts), "y")
    (group,) = found.groups
    assert np.clip(y, found.edges[0], found.edges[-1]).std() < 0.8 * y.std()
    assert group.mean.value == pytest.approx(y.mean(), rel=3e-3)
    assert group.standard_deviation.value == pytest.approx(y.std(), rel=3e-2)
    other = outcome(registry.plan(facts, Mean("y"), offer(CLEAR)), whole(table, {}))
    assert group.mean.value == pytest.approx(other.value, rel=3e-3)
    assert group.mean.confidence_interval == pytest.approx(other.confidence_interval, rel=2e-2)


def test_sampling_of_a_standard_deviation_counts_what_is_beyond_the_histogram() -> None:
    """Where noise is nothing, the interval is as wide as the fourth moment of the values makes it,
    or wider.
    """
    table, facts = long_tailed()
    found = column(described(Describe(("y",)), table, facts=facts), "y")
    z = table["y"] - table["y"].mean()
    error = np.sqrt((np.mean(z**4) - np.mean(z**2) ** 2) / len(z))
    low, high = found.groups[0].standard_deviation.confidence_interval
    assert (high**2 - low**2) / (2 * 1.96) > 0.95 * error


def test_without_a_profile_a_first_step_finds_the_bins() -> None:
    columns = (Column("y", ColumnKind.NUMERIC, -1e4, 1e4), *PEOPLE[1:])
    table = people(20_000)
    found = column(
        described(Describe(("y",)), table, facts=facts_of(20_000, columns), epsilon=2.0), "y"
    )
    assert -15 < found.edges[0] < found.edges[-1] < 15
    (group,) = found.groups
    assert group.quartiles[1].value == pytest.approx(np.median(table["y"]), abs=0.2)


@pytest.mark.parametrize("name", ["y", "k", "g", "m"])
def test_a_table_without_a_record_in_use_has_intervals_of_all_that_is_possible(name: Any) -> None:
    by = "b" if name == "y" else None
    found = column(described(Describe((name,), by, "x > 4.9"), people(2000), epsilon=1.0), name)
    for group in found.groups:
        if group.mean:
            low, high = group.mean.confidence_interval
            declared = next(c for c in PEOPLE if c.name == name)
            assert (low, high) == (found.clipped or (declared.lower, declared.upper))
            assert group.quartiles[1].confidence_interval == (declared.lower, declared.upper)
            assert group.standard_deviation.confidence_interval[0] == 0
        else:
            assert all(s.confidence_interval == (0.0, 1.0) for s in group.shares)


def test_a_column_of_few_whole_numbers_makes_groups() -> None:
    """As the boolean column does that holds the same; noise is below what is compared."""
    table = people(2000)
    table["i"] = table["b"]
    one = replace(next(c for c in PEOPLE if c.name == "b"), name="i", kind=ColumnKind.INTEGER)
    facts = facts_of(2000, (*PEOPLE, replace(one, levels=())))
    of_flag, of_number = (
        column(described(Describe(("y",), by), table, facts=facts), "y").groups for by in "bi"
    )
    for flag, number in zip(of_flag, of_number, strict=True):
        assert flag.mean.value == pytest.approx(number.mean.value, abs=1e-3)


def test_bad_questions_are_refused() -> None:
    facts = people_facts(2000)
    for query in (
        Describe(("y", "y")),
        Describe(("z",)),
        Describe(("y",), "y"),
        Describe(("y",), "x"),
    ):
        with pytest.raises(InvalidQuery):
            registry.plan(facts, query, offer(1))
    wide = Column("h", ColumnKind.CATEGORICAL, 0, 4999, tuple(map(str, range(5000))))
    with pytest.raises(InvalidQuery, match="more than"):
        registry.plan(facts_of(100, (*PEOPLE, wide)), Describe(("h",)), offer(1))
    with pytest.raises(InvalidPrivacy):
        registry.plan(facts, Describe(), replace(offer(1), rho=5))


def test_a_profile_of_some_columns_is_used_for_these() -> None:
    whole_facts = people_facts(2000)
    known = {k: v for k, v in whole_facts.profile.columns.items() if k != "x"}
    plan = registry.plan(replace(whole_facts, profile=Profile(known)), Describe(), offer(1))
    assert {measure.column.name for measure in plan.own.map_fn.measures} == {"x"}


def test_a_public_number_takes_noise_away() -> None:
    released = np.array([40.0, 55.0, 11.0])
    free, known = Cells(released, 3.0), Cells(released, 3.0, 100.0)
    assert known.counts.sum() == pytest.approx(100)
    assert known.noise(np.ones(3)) == pytest.approx(0, abs=1e-9)
    assert known.sd == pytest.approx(3 * np.sqrt(2 / 3))
    assert free.sd == 3.0


def coverage(draw: Any, truth: Any, reps: Any = 4000) -> Any:
    """How often an interval of `draw(rng)` holds the truth."""
    rng = seeded(11)
    ends = np.array([draw(rng).confidence_interval for _ in range(reps)])
    return float(np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])))


@pytest.mark.sample(4)
@pytest.mark.parametrize("total", [None, 600.0])
@pytest.mark.parametrize("p", [0.02, 0.3])
def test_shares_cover(total: Any, p: Any) -> None:
    """Of 600 records and noise of 12: 4,000 tables; rare levels are covered too often."""

    def draw(rng: Any) -> Any:
        counts = rng.multinomial(600, [p, 0.5, 0.5 - p]) + 12 * rng.normal(size=3)
        return share(Cells(counts, 12.0, total), np.eye(3)[0], np.ones(3))

    assert 0.93 < coverage(draw, p) < 0.995


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("q", [0, pytest.param(1, marks=pytest.mark.audit), 2])
@pytest.mark.parametrize("total", [None, pytest.param(2000.0, marks=pytest.mark.audit)])
def test_quartiles_cover(q: Any, total: Any) -> None:
    """Of an exponential law in ten bins, with noise of 25 in each count of 2,000 records."""
    at = np.arange(0, 1.01, 0.1)
    edges = -np.log(1 - np.minimum(at, 0.995))

    def draw(rng: Any) -> Any:
        counts = rng.multinomial(2000, np.full(10, 0.1)) + 25 * rng.normal(size=10)
        return quartiles(Cells(counts, 25.0, total), np.ones(10), edges, (0.0, 50.0))[q]

    assert 0.93 < coverage(draw, -np.log(1 - (q + 1) / 4)) < 0.985


@pytest.mark.slow
def test_quartiles_of_whole_numbers_cover_and_are_whole() -> None:
    law = np.array([0.1, 0.16, 0.3, 0.2, 0.24])

    def draw(rng: Any) -> Any:
        counts = rng.multinomial(400, law) + 15 * rng.normal(size=5)
        return whole_quartiles(Cells(counts, 15.0), np.ones(5), np.arange(2.0, 7.0))[0]

    assert coverage(draw, 3.0) > 0.93
    rng = seeded(0)
    for _ in range(50):
        figure = draw(rng)
        low, high = figure.confidence_interval
        assert low <= figure.value <= high
        assert all(x == int(x) for x in (low, high, figure.value))


@pytest.mark.parametrize("wide", [1, 3])
def test_quartiles_of_counted_whole_numbers_are_those_of_the_table(wide: int) -> None:
    """Given counts of bins of one or three whole numbers: the quartile is whole, right where a bin
    holds one, in the bin elsewhere; its interval, of whole numbers, holds the table's own."""
    values = seeded(3).poisson(4.0, 5000).clip(0, 17).astype(float)
    edges = np.arange(0.0, 19.0, wide)
    edges[-1] = 17.0  # the last number, not the end of its bin
    counts = np.histogram(values, np.append(edges[:-1], 18.0))[0].astype(float)
    found = quartiles(
        Cells(counts, 1e-6, 5000.0), np.ones(len(counts)), edges, (0.0, 17.0), whole=True
    )
    for p, each in zip((0.25, 0.5, 0.75), found, strict=True):
        right = float(np.quantile(values, p, method="inverted_cdf"))
        low, high = each.confidence_interval
        assert {each.value % 1, low % 1, high % 1} == {0.0}
        assert low <= right <= high
        assert low <= each.value <= high
        if wide == 1:
            assert each.value == right


@pytest.mark.slow
def test_quartiles_of_whole_numbers_in_noisy_bins_cover() -> None:
    """Of 2,000 records of a geometric law in bins of one to eight numbers, noise of 25."""
    edges = np.array([0.0, 1, 2, 3, 4, 6, 8, 12, 20, 27])
    at = np.append(edges[:-1], 28.0)
    below = 1 - 0.8**at
    law = np.diff(below / below[-1])

    def draw(rng: Any) -> Any:
        counts = rng.multinomial(2000, law) + 25 * rng.normal(size=9)
        bounds = (0.0, 27.0)
        return quartiles(Cells(counts, 25.0), np.ones(9), edges, bounds, whole=True)[1]

    least = np.flatnonzero((1 - 0.8 ** np.arange(1, 29)) / below[-1] >= 0.5)[0]
    assert coverage(draw, float(least)) > 0.93


def test_a_bin_of_one_number_is_shown_as_that_number() -> None:
    """Of numbers of which most are 0 the next number after 0 begins a bin: no reply shows it."""
    after = float(np.nextafter(0.0, 1.0))
    edges = np.array([-1.0, 0.0, after, 2.0])
    found = quartiles(
        Cells(np.array([10.0, 800.0, 190.0]), 1.0, 1000.0), np.ones(3), edges, (-1.0, 9.0)
    )
    for each in found:
        assert (each.value, *each.confidence_interval) == (0.0, 0.0, 0.0)
    assert shown_edges(edges) == [-1.0, 0.0, 0.0, 2.0]
    table = {"y": np.where(np.arange(4000) % 5, 0.0, 3.5), "m": np.zeros(4000), "x": np.zeros(4000)}
    table |= {"k": np.zeros(4000), "g": np.zeros(4000)}
    (described_,) = described(Describe(("y",)), table).columns
    told = [*described_.edges, *(q.value for q in described_.groups[0].quartiles)]
    told += [end for q in described_.groups[0].quartiles for end in q.confidence_interval]
    assert all(x == 0 or abs(x) > 1e-9 for x in told)


def test_described_counts_have_bins_and_quartiles_of_whole_numbers() -> None:
    """Of 20,000 visits declared up to 60, at a moderate ε and with noise: the table's own."""
    visits = seeded(7).poisson(4.0, 20_000).clip(0, 60).astype(float)
    facts = facts_of(20_000, [Column("v", ColumnKind.INTEGER, 0.0, 60.0)])
    plan = registry.plan(facts, Describe(("v",)), offer(20.0))
    (found,) = outcome(plan, whole({"v": visits})).columns
    assert found.edges == sorted({round(edge) for edge in found.edges})
    assert [q.value for q in found.groups[0].quartiles] == np.quantile(
        visits, (0.25, 0.5, 0.75)
    ).tolist()


def test_a_standard_deviation_that_noise_hides_is_none() -> None:
    clear = NoisyMoments(1000.0, 0.1, 0.0, 0.0, 1e-4, 0.02, ClipRange(-2, 2, 0), sure=True)
    assert clear.standard_deviation.value is None
    assert clear.standard_deviation.confidence_interval[1] > 0
    assert replace(clear, s2=0.3, sure=False).standard_deviation.value is None


def test_means_and_spreads_count_noise() -> None:
    """m and s² with noise of sd .01 and .02: their intervals are wider by what that says."""
    clear = NoisyMoments(1000.0, 0.1, 0.09, 0.0, 0.0, 0.02, ClipRange(-2, 2, 0), sure=True)
    noisy = replace(clear, eta=1e-4, tau2=4e-4)
    assert clear.mean.standard_error == pytest.approx(2 * np.sqrt(0.09 / 1000))
    assert noisy.mean.standard_error == pytest.approx(2 * np.sqrt(0.11 / 1000 + 1e-4))
    low, high = noisy.standard_deviation.confidence_interval
    reach = 1.959964 * np.sqrt((0.02 - 0.0081) / 1000 + 4e-4)
    assert (low, high) == pytest.approx((2 * np.sqrt(0.09 - reach), 2 * np.sqrt(0.09 + reach)))


@pytest.mark.slow
def test_means_and_spreads_cover_in_whole_descriptions() -> None:
    """150 tables of 2,000 records in two groups at ε = 1; a true .95 has less than .85 once in
    10⁶.
    """
    plan = registry.plan(people_facts(2000), Describe(("y", "x"), "b"), offer(1))
    hits = []
    for seed in range(150):
        found = outcome(plan, whole(people(2000, seed), {"m": np.zeros(2000, bool)}))
        for name, mean, sd in (("y", 1.0, np.sqrt(2)), ("x", 0.0, 1.0)):
            for group in column(found, name).groups:
                figures = (group.mean, group.standard_deviation, group.quartiles[1])
                ends = [figure.confidence_interval for figure in figures]
                truths = (mean, sd, mean)
                hits.append([a <= t <= b for (a, b), t in zip(ends, truths, strict=True)])
    shares = np.mean(np.reshape(hits, (150, 6, 3)), axis=0)
    assert shares.min() > 0.85
    assert 0.92 < shares.mean() < 0.985
