# SPDX-License-Identifier: Apache-2.0
"""Public rows from released marginals, the coding they give, and profiles that a query makes
itself.
"""

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.design import Compare
from reticent_server.domain.facts import ColumnProfile
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.steps import CountSum, QuantileTree, Released
from reticent_server.fitting.coding import LARGEST, code_design
from reticent_server.fitting.column_measures import (
    column_profile,
    counted_quantiles,
    is_counted,
    measures,
    reliable,
)
from reticent_server.fitting.own_profile import lacking, plan_own_profile
from reticent_server.fitting.public.rows import (
    draw_public_rows,
    level_shares,
    marginal,
    missing_share,
    on_simplex,
    upper_tail,
)
from reticent_server.fitting.public.standardise import Location
from support.fits.regressions import (
    boolean,
    drive_step,
    facts_of,
    numeric,
    plain_design,
    profile_of,
    whole,
)
from support.seeds import seeded

LEVELS = np.linspace(0.0005, 0.9995, 1000)
G = Column("g", ColumnKind.CATEGORICAL, 0.0, 2.0, tuple("abc"), ("",))
K = Column("k", ColumnKind.INTEGER, 1.0, 13.0)


def test_a_number_is_interpolated_between_its_quantiles_and_has_their_tail() -> None:
    rng = seeded(0)
    x = rng.normal(size=200_000)
    p = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
    released = ColumnProfile(quantiles=tuple(np.quantile(x, p).tolist()), probabilities=p)
    found = marginal(released, LEVELS, (-100.0, 100.0))
    assert np.mean(found) == pytest.approx(0, abs=0.02)
    assert np.std(found) == pytest.approx(1, abs=0.05)
    assert np.all(np.diff(found) >= 0)
    assert -8 < found[0] < found[-1] < 8
    assert marginal(released, LEVELS, (-1.0, 1.0)).max() == 1.0


def test_quartiles_alone_are_taken_for_a_normal_laws() -> None:
    """Not for those of an exponential tail, which is 1.4 times as long: coordinates would be too
    short for what is measured in them.
    """
    quartiles = tuple(NormalDist(3.0, 2.0).inv_cdf(p) for p in (0.25, 0.5, 0.75))
    released = ColumnProfile(quantiles=quartiles, probabilities=(0.25, 0.5, 0.75))
    found = marginal(released, LEVELS, (-100.0, 100.0))
    assert np.mean(found) == pytest.approx(3, abs=0.01)
    assert np.std(found) == pytest.approx(2, rel=0.05)
    high, far = np.interp([0.975, 0.999], LEVELS, found)
    assert high == pytest.approx(3 + 2 * 1.96, abs=0.2)
    assert far == pytest.approx(3 + 2 * 3.09, abs=0.7)


def test_a_pareto_tail_has_its_shape() -> None:
    p, exact = np.array([0.9, 0.95, 0.975]), (1 - np.array([0.9, 0.95, 0.975])) ** -0.5
    found = upper_tail(p, exact, np.array([0.99, 0.999]))
    np.testing.assert_allclose(found, np.array([0.01, 0.001]) ** -0.5, rtol=0.15)
    assert np.all(upper_tail(p, np.ones(3), np.array([0.99])) == 1)


def test_levels_have_their_released_shares() -> None:
    released = ColumnProfile(counts=(900.0, -4.0, 100.0), count_sd=8.0)
    shares = level_shares(released)
    assert shares.sum() == pytest.approx(1)
    assert shares[1] == pytest.approx(2 / 1000, rel=0.3)
    found = marginal(released, LEVELS, (0, 2))
    assert np.mean(found == 0) == pytest.approx(shares[0], abs=0.002)
    np.testing.assert_allclose(on_simplex(np.array([3.0, -1.0, 2.0]), 3.0), [2.0, 0.0, 1.0])
    assert missing_share(ColumnProfile(missing=30.0), 100) == 0.3
    assert missing_share(ColumnProfile(missing=-3.0), 100) == 0


def test_the_unknown_side_of_a_spike_is_spread_to_its_bound() -> None:
    p = tuple(k / 20 for k in range(1, 20))
    released = ColumnProfile(quantiles=(0.0,) * 18 + (3.0,), probabilities=p)
    found = marginal(released, LEVELS, (0.0, 50.0))
    assert np.mean(found == 0) > 0.85
    assert found.max() > 40


def test_a_mask_leaves_the_rows_that_are_in_use() -> None:
    rng = seeded(1)
    table = {"x": rng.normal(size=2000), "y": rng.normal(size=2000)}
    columns = [numeric("x", -9, 9), numeric("y", -9, 9)]
    facts = facts_of(2000, columns, profile_of(table, columns))
    design = plain_design(columns[:1], columns[1], where=Compare("x", ">", 1.0))
    rows = draw_public_rows(design, facts)
    assert rows.share == pytest.approx(0.16, abs=0.02)
    assert rows.X[:, 1].min() > 1
    assert draw_public_rows(design, facts, masked=False).share == 1
    assert draw_public_rows(design, facts_of(2000, columns, None)) is None
    again = draw_public_rows(design, facts)
    np.testing.assert_array_equal(rows.X, again.X)


def test_the_rows_of_a_design_are_drawn_once() -> None:
    """For all quantiles, and for one epsilon after the other; another number of records, profile or
    design has rows of its own.
    """
    table = {name: seeded(1).normal(size=500) for name in ("x", "y")}
    columns = [numeric("x", -9, 9), numeric("y", -9, 9)]
    facts = facts_of(500, columns, profile_of(table, columns))
    design = plain_design(columns[:1], columns[1])
    rows = draw_public_rows(design, facts)
    assert draw_public_rows(plain_design(columns[:1], columns[1]), facts) is rows
    assert not rows.X.flags.writeable
    others = (
        draw_public_rows(plain_design(columns[:1], columns[1], intercept=False), facts),
        draw_public_rows(design, replace(facts, n=501)),
        draw_public_rows(
            design,
            replace(facts, profile=profile_of({"x": 2 * table["x"], "y": table["y"]}, columns)),
        ),
    )
    assert all(other is not rows for other in others)


def test_a_coding_keeps_declared_bounds_on_the_lattice_as_far_as_its_steps_stay_fine() -> None:
    rng = seeded(2)
    table = {"x": rng.normal(size=500), "z": np.full(500, 7.0), "y": rng.normal(size=500)}
    columns = [numeric("x", -1e3, 1e3), numeric("z", 0, 10), numeric("y", -9, 9)]
    facts = facts_of(500, columns, profile_of(table, columns))
    design = plain_design(columns[:2], columns[2])
    rows = draw_public_rows(design, facts)
    coding = code_design(design, design.response, rows, Location(0.0, 1.0))
    x, z = coding.locations
    assert x.centre == pytest.approx(0, abs=0.2)
    assert max(1e3 - x.centre, 1e3 + x.centre) <= LARGEST * x.scale * (1 + 1e-12)
    assert x.scale >= 0.9
    assert max(z.centre, 10 - z.centre) <= LARGEST * z.scale
    np.testing.assert_allclose(coding.standardised(rows.X)[:, 0], 1)
    without = plain_design(columns[:2], columns[2], intercept=False)
    found = code_design(without, without.response, draw_public_rows(without, facts), x)
    assert [where.centre for where in found.locations] == [0, 0]


def test_what_is_measured_of_a_column() -> None:
    assert [m.what for m in measures(numeric("x"))] == ["quantiles"]
    assert [m.what for m in measures(G)] == ["counts"]
    assert [m.what for m in measures(K)] == ["counts"]
    assert is_counted(boolean("d"))
    assert not is_counted(Column("big", ColumnKind.INTEGER, 0.0, 1e6))
    (of_g,), (of_k,) = measures(G), measures(K)
    assert (of_g.bins, of_k.bins) == (4, 13)
    data = whole(
        {"g": np.array([0.0, 2.0, 0.0]), "k": np.array([1.0, 13.0, 4.0])},
        {"g": np.array([False, False, True])},
    )
    np.testing.assert_array_equal(of_g.codes(data, None), [0, 2, 3])
    np.testing.assert_array_equal(of_k.codes(data, None), [0, 12, 3])
    used = np.array([True, False, True])
    np.testing.assert_array_equal(of_k.codes(data, used), [0, -1, 3])


def test_counts_give_quantiles_and_missing_cells() -> None:
    (of_k,), (of_g,) = measures(K), measures(G)
    counts = np.array([0.0, 0, 0, 0, 10, 20, 40, 20, 10, 0, 0, 0, 0])
    part = CountSum(13, 10**9)
    found = column_profile(K, [(of_k, part, Released(counts, 1.0))], (0.05, 0.5, 0.95), 100)
    assert found.quantiles == (5.0, 7.0, 9.0)
    assert found.counts == tuple(counts)
    assert found.count_sd == 1.0
    released = Released(np.array([5.0, -1.0, 3.0, 2.0]), 1.0)
    found = column_profile(G, [(of_g, CountSum(4, 10**9), released)], (0.5,), 10)
    assert found.counts == (5.0, 0.0, 3.0)
    assert found.missing == 2.0
    assert counted_quantiles((0.0, 0.0), 3.0, (0.1, 0.9)) == (3.0, 4.0)


def test_only_ranks_that_a_tree_can_find_are_asked_for() -> None:
    p = (0.01, 0.25, 0.5, 0.75, 0.99)
    tree = QuantileTree((0.0, 1.0), p, RHO_UNITS)
    assert reliable(tree, 10**7, p) == p
    assert reliable(tree, 4, p) == (0.5,)
    assert set(reliable(tree, 300, p)) <= {0.25, 0.5, 0.75}


@pytest.mark.parametrize("max_rows", [1, 3])
def test_an_own_profile_is_like_the_curator_s(max_rows: int) -> None:
    rng, persons = seeded(3), 4200 // max_rows
    table = {
        "x": rng.normal(size=4200),
        "k": rng.integers(1, 14, 4200).astype(float),
        "y": rng.normal(size=4200),
    }
    columns = [numeric("x", -9, 9), K, numeric("y", -9, 9)]
    facts = facts_of(persons, columns, None, max_rows).of_places()
    design = plain_design(columns[:2], columns[2])
    own = plan_own_profile(facts, design, 10**12, lacking(facts, design))
    assert all(part.unit_rows * part.person_rows == max_rows for part in own.step.parts)
    assert own.rho == sum(part.rho for part in own.step.parts) <= 0.2 * 10**12
    assert own.unresolved == ()
    assert not own.masked, "all marginals are of the records in use"
    profile = own.profiled(drive_step(own.step, whole(table))).profile
    x = profile.columns["x"]
    np.testing.assert_allclose(x.quantiles, np.quantile(table["x"], x.probabilities), atol=0.6)
    counts = np.bincount(table["k"].astype(int))[1:] / max_rows
    np.testing.assert_allclose(profile.columns["k"].counts, counts, atol=60)
    guess = own.guessed.profile
    assert set(guess.columns) == {"x", "k", "y"}
    assert guess.columns["k"].counts == (1.0,) * 13
