# SPDX-License-Identifier: Apache-2.0
"""Benchmarks that call the server's parts by themselves, on the smallest table that shows that they
run: they are not typed, and are run whole by night alone.
"""

from pathlib import Path

import numpy as np
import pytest
from benchmarks import analysts, cells, named_tests, synthetic, useless

from support.attacks.seeded_noise import seed_noise


def test_a_row_of_the_cells_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    seed_noise(monkeypatch, "cells")
    monkeypatch.setattr(cells, "TUNING_RUNS", 1)
    row = cells.new_row("contaminated", 2, 2_000, 1, (1.0, 1.0, 1.0))
    assert set(cells.PRIVATE) < set(row)
    assert len(row["ours"]) == len(row["biweight"]) == len(row["ratios"]) == len(cells.EPSILONS)
    assert np.all(np.isfinite(row["ours"]))
    assert "contaminated" in cells.line(row)


@pytest.mark.parametrize("case", named_tests.CASES, ids=lambda case: str(case.name))
def test_a_line_of_each_named_test_is_made(
    case: named_tests.Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed_noise(monkeypatch, case.name)
    for name, size in (("REPS", 2), ("EFFECT_REPS", 2), ("LARGE", 20_000)):
        monkeypatch.setattr(named_tests, name, size)
    law = next(law for law in named_tests.LAWS if law.name in case.laws)
    shares = named_tests.line(case, law, 500, 4.0)
    assert len(shares) == 6
    assert all(0 <= share <= 1 for share in shares)


def test_tables_that_are_not_there_are_said_to_be_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["synthetic", str(tmp_path)])
    synthetic.main()
    assert "!! SKIPPED" in capsys.readouterr().out
    (tmp_path / "adult.data").touch()
    synthetic.main()
    assert "has no cps_asec_2024_wages.csv\n" in capsys.readouterr().out


def test_useless_intervals_are_judged_on_tables_with_one_sampling_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Records drawn from a sample once more would be twice as far from the true slope."""
    drawn: list[np.ndarray] = []
    rows = useless.Frame.rows

    def seen(frame: useless.Frame, index: np.ndarray) -> object:
        drawn.append(index)
        return rows(frame, index)

    monkeypatch.setattr(useless.Frame, "rows", seen)
    monkeypatch.setattr(useless, "REPEATS", 1)
    (row,) = useless.intervals(1_600, 2, 4.0)
    assert len(drawn) == 1
    assert len(np.unique(drawn[0])) == 1_600
    assert row[0] < 0.1


def test_many_analysts_at_once_are_green_only_where_no_request_failed() -> None:
    """It was green with 10,000 requests refused, which a fast machine had no budget left for."""
    right = {
        "releases": 9,
        "stored_releases": 9,
        "failures": 0,
        "retries_with_another_reply": 0,
        "ledger_problems": 0,
        "pending": 0,
        "spent_is_answered": True,
    }
    assert analysts.wrong(right) == []
    for name in right.keys() - {"releases"}:
        (said,) = analysts.wrong(right | {name: 2})
        assert said == f"{name} is 2"
