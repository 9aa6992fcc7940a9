# SPDX-License-Identifier: Apache-2.0
"""Lines of the real tables: what is covered, given, wild and wide."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.real_tables.alone import Alone
from benchmarks.real_tables.lines import Sample, line
from benchmarks.real_tables.models import read_folder
from benchmarks.real_tables.reasons import reasons
from benchmarks.real_tables.textbook import Textbook, textbook

from reticent_server.fitting.trust import words
from support.seeds import seeded

TARGET = Textbook(("a", "b"), np.array([1.0, 2.0]), np.array([0.1, 0.1]))


def sample(a: float, b: float | None, error: float = 0.2) -> Sample:
    ends = [[a - 2 * error, a + 2 * error], [None, None]]
    if b is not None:
        ends[1] = [b - 2 * error, b + 2 * error]
    reply = {
        "terms": ["a", "b"],
        "estimable": [True, b is not None],
        "coefficients": [a, 0.0 if b is None else b],
        "standard_errors": [error, error],
        "privacy_standard_errors": [0.15, 0.15],
        "confidence_intervals": ends,
        "warnings": [] if b is not None else ["About 60 records decide b: no interval"],
        "cut": {"tail_index": 1.2, "allowances": [0.05, 0.05]},
    }
    return Sample.of(reply, {"privacy_to_sampling": [3.5, 2.0 if b != 2.0 else None]})


def test_a_line_counts_intervals_that_were_given() -> None:
    samples = [sample(1.0, 2.1), sample(1.1, 2.6), sample(0.9, None), sample(1.5, 2.0)]
    found = line("squared", "m", (100, 1.0), samples, np.array([1.0, 2.6]), TARGET)
    assert found.textbook == pytest.approx(5 / 7)
    assert found.own == pytest.approx(4 / 7)
    assert found.given == pytest.approx(7 / 8)
    assert found.quiet == pytest.approx(2 / 3)  # of the second terms that were not 2 exactly
    assert found.width == pytest.approx(2 * 0.2 / (1.959964 * 0.1))
    assert found.noise == pytest.approx(1.5)
    assert found.warned == 0.25
    assert found.worst == "b"
    assert found.kept_back == {"slope of the tail": (pytest.approx(1 / 8), 0.0, pytest.approx(2.0))}


def test_a_fit_that_says_too_small_an_error_is_wild() -> None:
    samples = [sample(1.0, 2.0, 0.01), sample(1.5, 2.0, 0.01)]
    assert line("squared", "m", (100, 1.0), samples, None, TARGET).wild > 0


def test_an_estimate_without_an_interval_does_not_make_those_of_others_wild() -> None:
    samples = [sample(1.0, 2.0), sample(1.1, 2.1), sample(0.9, None), sample(1.0, None)]
    assert line("squared", "m", (100, 1.0), samples, None, TARGET).wild == 0


@pytest.mark.parametrize(
    ("warning", "noise", "reason"),
    [
        (words.NOT_ARRIVED, 0.1, "not arrived"),
        ("Fewer than about 20 events decide b: no interval", 0.1, "events"),
        ("Not identifiable at this epsilon: b.", 0.1, "whitening"),
        ("Not identifiable at this epsilon: b.", 0.1995, "noise"),
    ],
)
def test_a_reply_says_which_rule_declines(warning: str, noise: float, reason: str) -> None:
    reply = {
        "terms": ["a", "b"],
        "estimable": [True, False],
        "standard_errors": [0.2, 0.2],
        "privacy_standard_errors": [0.1, noise],
        "warnings": [warning],
    }
    assert reasons(reply) == ["", reason]


def test_a_folder_names_its_models_and_the_textbook_is_least_squares(tmp_path: Path) -> None:
    rng = seeded(2)
    x, g = rng.normal(size=400), rng.choice(["u", "v"], 400)
    y = 1 + 2 * x + 3 * (g == "v") + rng.normal(size=400)
    lines = [f"{a},{b},{c}" for a, b, c in zip(y, x, g, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["y,x,g", *lines]) + "\n", encoding="utf-8")
    numbers = {"kind": "numeric", "lower": -10, "upper": 20}
    columns = {"y": numbers, "x": numbers, "g": {"kind": "categorical"}}
    model = {"name": "m", "table": "t", "kind": "linear_regression", "formula": "y ~ x + g"}
    stored = {"tables": {"t": columns}, "models": [model]}
    (tmp_path / "models.json").write_text(json.dumps(stored), encoding="utf-8")
    folder = read_folder(tmp_path)
    frame = folder.frame("t")
    table = frame.rows(np.arange(400))
    found = textbook(table, folder.models[0].query, 100)
    table.close()
    X = np.column_stack([np.ones(400), x, g == "v"])
    assert found.coefficients == pytest.approx(np.linalg.lstsq(X, y, rcond=None)[0], abs=1e-4)
    assert found.standard_errors[1] == pytest.approx(0.1, rel=0.25)


def test_a_rule_that_others_share_is_not_alone() -> None:
    found = Alone()
    ruled = {"a": np.array([True, True, False]), "b": np.array([False, True, False])}
    found.add(ruled, np.array([True, False, True]), np.array([2.0, 3.0, 1.5]))
    assert found.declined == {"a": 2, "b": 1}
    assert found.alone == {"a": [(True, 2.0)], "b": []}
    assert found.given == [(True, 1.5)]
    assert "| a | 0.667 | 0.3333 | 1.00 | 2.0 |" in found.table()
