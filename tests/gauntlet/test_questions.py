# SPDX-License-Identifier: Apache-2.0
"""Samples, targets and figures of the gauntlet, on small tables of its own."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.gauntlet import tables
from benchmarks.gauntlet.frame import Frame
from benchmarks.gauntlet.known_failures import KNOWN
from benchmarks.gauntlet.lines import FitLine, from_json
from benchmarks.gauntlet.models import every, linear, mean, named
from benchmarks.gauntlet.questions import in_use, rank_errors
from benchmarks.gauntlet.replies import estimates, forecast_ratios
from benchmarks.gauntlet.report import number
from benchmarks.gauntlet.run import asked, run

from reticent_server.kinds.linear_regression.target import noise_free_fit
from support.seeds import seeded


def frame() -> Any:
    rng = seeded(5)
    x = rng.normal(size=3_000)
    found = Frame().put("x", x, -10, 10).put("y", 2 * x + rng.normal(size=3_000), -50, 50)
    c = rng.normal(size=3_000)
    found.put("c", c, -10, 10).put("b", x + 2 * c, -30, 30)
    found.put("m", np.where(x > 1, np.nan, x), -10, 10, missing=("NA",))
    return found.factor("g", np.where(x > 1.5, "rare", "often")).booleans(high=x > 0)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setitem(tables.TABLES, "small", frame)
    yield
    tables.table.cache_clear()


def test_names_are_unique_and_known_failures_are_models() -> None:
    names = [question.name for question in every()]
    assert len(names) == len(set(names))
    assert set(KNOWN) <= set(names)
    with pytest.raises(LookupError):
        named("no such model")


def test_a_factor_s_levels_are_by_frequency_or_as_they_are_given() -> None:
    assert frame().columns["g"].levels == ("often", "rare")
    given = Frame().factor("g", ["b", "a", "b"], ("a", "b"))
    assert given.arrays["g"].tolist() == [1, 0, 1]


def test_a_sample_keeps_missing_cells_apart() -> None:
    table = frame().of({"m", "y"}).sample(seeded(1), 500)
    block = table.block()
    table.close()
    assert block.missing["m"].sum() == np.isnan(table.arrays["m"]).sum() > 0
    assert not block.columns["m"][block.missing["m"]].any()


@pytest.mark.slow
def test_a_model_s_intervals_cover_its_noise_free_target(small: Any) -> None:
    question = linear("small", "small", 2_000, "y ~ m", where="high == 1")
    (line,) = asked(question, 4, (4.0,)).lines
    assert isinstance(line, FitLine)
    assert (line.counts.fits, line.n, line.epsilon) == (4, 2_000, 4.0)
    assert line.coverage >= 0.5
    assert from_json(line.json() | {"counts": vars_of(line)}) == line


def vars_of(line: Any) -> dict[Any, Any]:
    return {name: getattr(line.counts, name) for name in line.counts.__slots__}


def test_the_target_s_errors_are_those_of_a_sample_s_size(small: Any) -> None:
    """Of 750 of 3,000 records: five of the standard errors of a coefficient, 1/√750, and of its own
    sandwich, whose relative variance is that of 750 squares x²e², 8/750, by 4.
    """
    question, whole = linear("small", "small", 750, "y ~ x"), frame()
    target = question.target(question.needed(whole))
    x, y = whole.arrays["x"], whole.arrays["y"]
    assert question.solve is noise_free_fit
    assert target.coefficients == pytest.approx(np.polyfit(x, y, 1)[::-1], abs=0.2)
    assert target.standard_errors[1] == pytest.approx(1 / np.sqrt(750), rel=0.3)


def test_a_mean_s_target_is_over_the_records_in_use(small: Any) -> None:
    question = mean("small", "small", 1_000, "m", "high == 1")
    target = question.target(frame())
    x = frame().arrays["x"]
    assert target.coefficients[0] == pytest.approx(x[(x > 0) & (x <= 1)].mean())
    assert len(in_use(frame(), "m", "high == 1")) == ((x > 0) & (x <= 1)).sum()


def test_a_model_that_is_refused_says_why(small: Any) -> None:
    outcome = asked(linear("small", "small", None, "y ~ absent"), 2)
    assert outcome.refused
    assert outcome.goals(missed=True) == {"answered"}


@pytest.mark.slow
def test_a_model_that_breaks_is_said_and_the_next_is_asked(
    small: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_: Any, __: Any) -> Any:
        raise np.linalg.LinAlgError("Eigenvalues did not converge")

    whole = linear("broken", "small", 750, "y ~ x")
    first, second = run([replace(whole, solve=broken), linear("sound", "small", 750, "y ~ x")], 1)
    assert (first.broken, first.lines) == ("LinAlgError: Eigenvalues did not converge", [])
    assert first.goals(missed=True) == {"answered"}
    assert second.lines
    assert "!! BROKEN broken: LinAlgError" in capsys.readouterr().out


@pytest.mark.audit
def test_what_collinear_terms_do_not_identify_has_no_target_and_no_interval(small: Any) -> None:
    """b = x + 2c: its sum with the others is identified, and the intercept; none of the three
    is.
    """
    collinear = linear("collinear", "small", 2_000, "y ~ x + c + b", collinear=True)
    target = collinear.target(collinear.needed(frame()))
    assert np.isnan(target.coefficients).tolist() == [False, True, True, True]
    assert np.isnan(target.standard_errors).tolist() == [False, True, True, True]
    plain = linear("plain", "small", 2_000, "y ~ x + c")
    known = plain.target(plain.needed(frame()))
    assert target.coefficients[0] == pytest.approx(known.coefficients[0], abs=0.1)
    (line,) = asked(collinear, 2, (4.0,)).lines
    assert isinstance(line, FitLine)
    assert line.flagged >= 0.75
    assert np.isfinite(line.rms_z)


def test_an_absent_table_is_skipped_aloud(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tables, "DATA", tmp_path)
    monkeypatch.setitem(tables.TABLES, "nowhere", tables.adult)
    outcome = asked(linear("none", "nowhere", None, "hours ~ age"), 2)
    tables.table.cache_clear()
    assert "adult.data is not in" in outcome.skipped
    assert not outcome.goals(missed=True)


def test_rank_errors_count_records_and_ties_cost_nothing() -> None:
    x = np.array([0.0] * 50 + [1.0] * 50)
    result = {"probabilities": [0.25, 0.75, 0.75], "values": [0.0, 1.0, 0.0]}
    assert rank_errors(result, x) == pytest.approx([0, 0, 25])


def test_replies_of_every_kind_have_the_same_numbers() -> None:
    one = {"value": 3.0, "standard_error": 2.0, "privacy_standard_error": 1.0}
    assert estimates(one).coefficients.tolist() == [3.0]
    rest = {
        "standard_errors": [1, 2],
        "privacy_standard_errors": [1, 1],
        "estimable": [True, False],
    }
    assert estimates({"location": 1, "scale": 2, **rest}).terms == ("location", "scale")
    said = forecast_ratios({"privacy_to_sampling": [1.0, None]}, 2)
    assert said[0] == 1
    assert np.isnan(said[1])
    one_for_all = {"privacy_standard_error": 2.0, "sampling_standard_error": 4.0}
    assert forecast_ratios(one_for_all, 2).tolist() == [0.5, 0.5]
    assert np.isnan(forecast_ratios(None, 1)).all()


def test_figures_have_two_places_and_no_leading_zero() -> None:
    shown = [number(x) for x in (0.931, 0.0, 1.5, 12.0, float("nan"))]
    assert shown == [".93", "0", "1.50", "12.00", "–"]
