# SPDX-License-Identifier: Apache-2.0
"""What one record contributes, against the formulas."""

from typing import Any

import numpy as np
import pytest

from reticent_server.domain.design import ColumnValue, Design, Term
from reticent_server.fitting.coding import TermCoding
from reticent_server.fitting.maps import invertible_on_lattice
from reticent_server.fitting.public.standardise import Location
from reticent_server.kinds.study.maps import (
    LengthsMap,
    MomentFrame,
    MomentsMap,
    RecordGroups,
    StudyScores,
    StudyScoresMap,
)
from support.kinds.studies import whole
from support.seeds import seeded

N, RADIUS, LIMIT = 200, 3.0, 4.0
TERMS = tuple(Term(name, (ColumnValue(name),), -50.0, 50.0) for name in "xy")
DESIGN = Design(
    None, TERMS, intercept=True, where=None, columns=("x", "y", "g"), missing_columns=("x",)
)
CODING = TermCoding(DESIGN, (Location(1.0, 2.0), Location(-1.0, 0.5)))
GROUPS = RecordGroups("g", (0.0, 1.0))
RNG = seeded(8)
W = [invertible_on_lattice(RNG.normal(size=(3, 3))) for _ in range(2)]
FRAMES = tuple(MomentFrame(w, RADIUS) for w in W)


@pytest.fixture
def table() -> tuple[Any, Any]:
    x, y = RNG.normal(0, 3, (2, N))
    found = {"x": x, "y": y, "g": np.arange(N) % 3 * 1.0}
    return found, np.arange(N) % 5 == 0


def expected(table: Any, g: Any) -> tuple[Any, Any, Any, Any]:
    """u and ω of a group's records in use, and which these are."""
    found, missing = table
    z = np.stack([np.ones(N), (found["x"] - 1) / 2, (found["y"] + 1) / 0.5])
    u = W[g] @ z
    used = (found["g"] == g) & ~missing
    return z, u, np.minimum(1, RADIUS / np.sum(u**2, axis=0)), used


def test_rows_are_weighted_by_the_radius(table: Any) -> None:
    rows, codes = MomentsMap(CODING, GROUPS, FRAMES, count=True)(whole(table[0], {"x": table[1]}))
    for g in range(2):
        _, u, w, used = expected(table, g)
        assert np.mean(w[used] < 1) > 0.3
        exact = np.where(used, u * np.sqrt(w / RADIUS), 0.0)
        np.testing.assert_allclose(rows[3 * g : 3 * g + 3], exact, atol=1e-4)
        np.testing.assert_array_equal(codes == g, used)
    assert np.all(np.sum(rows**2, axis=0) <= 1 + 1e-9)


def test_lengths_are_counted_by_bin(table: Any) -> None:
    edges = (1.0, 4.0, 20.0)
    (codes,) = LengthsMap(CODING, GROUPS, FRAMES, edges)(whole(table[0], {"x": table[1]}))
    for g in range(2):
        _, u, _, used = expected(table, g)
        bins = np.searchsorted(edges, np.sum(u**2, axis=0), side="right")
        np.testing.assert_array_equal(codes[used], (4 * g + bins)[used])
    assert np.all(codes[table[1] | (table[0]["g"] == 2)] == -1)


def test_scores_are_weighted_as_the_moments_are(table: Any) -> None:
    B, v = RNG.normal(size=(2, 3)), RNG.normal(size=3)
    scores = tuple(StudyScores(B * (g + 1), v) for g in range(2))
    (rows,) = StudyScoresMap(CODING, GROUPS, FRAMES, scores, LIMIT)(
        whole(table[0], {"x": table[1]})
    )
    for g in range(2):
        z, _, w, used = expected(table, g)
        exact = np.where(used, w * (B * (g + 1) @ z) * (v @ z) / LIMIT, 0.0)
        np.testing.assert_allclose(rows[2 * g : 2 * g + 2], exact, atol=1e-2)


def test_a_record_that_is_no_number_contributes_nothing_to_the_lengths(table: Any) -> None:
    found = table[0] | {"y": np.where(np.arange(N) == 1, np.nan, table[0]["y"])}
    (codes,) = LengthsMap(CODING, RecordGroups(), FRAMES[:1], (1.0,))(whole(found, {"x": table[1]}))
    assert codes[1] == -1
