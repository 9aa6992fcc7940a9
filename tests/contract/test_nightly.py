# SPDX-License-Identifier: Apache-2.0
"""`tools/nightly.py` on steps that take no time, and the regions of the documentation that
`tools/figures.py` fills.
"""

import importlib.util
import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmarks import named_tests_tables

from support.documents.code_blocks import ROOT


def tool(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"tool_{name}", ROOT / f"tools/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


nightly, figures = tool("nightly"), tool("figures")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository of one file, and a step's tally of how often it ran."""
    for command in (["init", "-q"], ["add", "a"], ["commit", "-qm", "a"]):
        (tmp_path / "a").write_text("a")
        given = ("-c", "user.name=t", "-c", "user.email=t@example.org", *command)
        subprocess.run(("git", *given), cwd=tmp_path, check=True)
    return tmp_path


def step(name: str, code: str) -> Any:
    tried = (sys.executable, "-c", code)
    return nightly.NightStep(
        name, (sys.executable, "-c", f"open('ran', 'a').write('{name} '); {code}"), tried
    )


STEPS = (step("one", "print('well')"), step("two", "raise SystemExit('no luck')"), step("tre", ""))


def ran(tree: Path) -> list[str]:
    return (tree / "ran").read_text().split()


def test_every_step_is_run_and_a_red_one_ends_none(tree: Path) -> None:
    assert nightly.main([], STEPS, tree) == 1
    assert ran(tree) == ["one", "two", "tre"]
    commit = nightly.commit_of(tree)
    report = (tree / "build/nightly.md").read_text()
    assert report.startswith(f"# Nightly run of {commit}\n")
    assert "2 of 3 steps green, 1 red, 0 absent, 0 not run." in report
    assert "| two | RED | 0.0 |" in report
    assert "no luck" in report
    assert "well" not in report
    assert (tree / f"build/nightly/{commit}/one.txt").read_text() == "well\n"


def test_a_run_goes_on_with_what_is_not_green(tree: Path) -> None:
    nightly.main(["--only", "one", "two"], STEPS, tree)
    assert (
        "1 of 3 steps green, 1 red, 0 absent, 1 not run." in (tree / "build/nightly.md").read_text()
    )
    assert nightly.main(["--resume"], STEPS, tree) == 1
    assert ran(tree) == ["one", "two", "two", "tre"]
    nightly.main([], STEPS, tree)
    assert ran(tree)[4:] == ["one", "two", "tre"]


def test_a_step_without_the_file_that_it_needs_is_no_failure_and_is_said(tree: Path) -> None:
    needy = replace(STEPS[0], needs=tree / "tables.json")
    assert nightly.main([], (needy,), tree) == 0
    report = (tree / "build/nightly.md").read_text()
    assert "0 of 1 steps green, 0 red, 1 absent, 0 not run." in report
    assert "tables.json is not on this machine" in report
    assert not (tree / "ran").exists()
    (tree / "tables.json").touch()
    assert nightly.main(["--resume"], (needy,), tree) == 0
    assert ran(tree) == ["one"]


def test_steps_that_look_at_no_clock_run_beside_each_other_and_others_alone(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of two waits for what the other leaves, so that they end only where both run at a time;
    the third asserts that both have begun.
    """
    monkeypatch.setattr(nightly, "cores", lambda: 2)
    wait = (
        "import os, time; open({0!r}, 'w').close(); ended = time.monotonic() + 60\n"
        "while not os.path.exists({1!r}): assert time.monotonic() < ended; time.sleep(.01)"
    )
    pair = [
        nightly.NightStep(mine, (sys.executable, "-c", wait.format(mine, its)), (), beside=True)
        for mine, its in (("one", "two"), ("two", "one"))
    ]
    last = step("tre", "import os; assert os.path.exists('one') and os.path.exists('two')")
    assert nightly.main([], (*pair, last), tree) == 0
    assert (
        "3 of 3 steps green, 0 red, 0 absent, 0 not run." in (tree / "build/nightly.md").read_text()
    )


def test_no_step_begins_when_the_night_is_stopped(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second step of one lane is under way when the run is given up, and ends after that."""
    given_up, began = threading.Event(), []

    class Lanes(nightly.ThreadPoolExecutor):
        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            given_up.set()
            super().shutdown(wait=wait)

    class Fake:
        def run(self, step: Any) -> Any:
            began.append(step.name)
            assert step.name == "one" or given_up.wait(60)
            return nightly.StepOutcome(nightly.GREEN, 0.0)

    monkeypatch.setattr(nightly, "ThreadPoolExecutor", Lanes)
    monkeypatch.setattr(nightly, "cores", lambda: 1)
    run = nightly.ended(Fake(), [nightly.NightStep(n, (), (), True) for n in ("one", "two", "tre")])
    assert next(run)[0].name == "one"
    run.close()
    assert "tre" not in began


def test_another_commit_begins_anew(tree: Path) -> None:
    nightly.main(["--resume"], STEPS[:1], tree)
    (tree / "a").write_text("b")
    assert nightly.commit_of(tree).endswith("-changed")
    assert nightly.main(["--resume"], STEPS[:1], tree) == 0
    assert ran(tree) == ["one", "one"]


def test_what_passed_counts_only_for_a_run_that_goes_on(tree: Path) -> None:
    code = (
        "import sys; print('had', open(sys.argv[1]).read()); "
        "open(sys.argv[1], 'a').write('x'); sys.exit(1)"
    )
    command = (sys.executable, "-c", code, "{passed}")
    stopped = replace(step("one", ""), command=command)
    (folder := tree / "build/nightly" / nightly.commit_of(tree)).mkdir(parents=True)
    names, log = folder / "one.passed", folder / "one.txt"
    names.write_text("before")
    assert nightly.main(["--resume"], (stopped,), tree) == 1
    assert log.read_text() == "had before\n"
    assert names.read_text() == "beforex"
    assert nightly.main(["--only", "one"], (stopped,), tree) == 1
    assert "FileNotFoundError" in log.read_text()


def test_figures_put_into_the_documentation_are_no_other_tree(tree: Path) -> None:
    (tree / "docs").mkdir()
    (tree / "docs/page.md").write_text("old")
    for command in (["add", "docs"], ["commit", "-qm", "docs"]):
        given = ("-c", "user.name=t", "-c", "user.email=t@example.org", *command)
        subprocess.run(("git", *given), cwd=tree, check=True)
    commit = nightly.commit_of(tree)
    (tree / "docs/page.md").write_text("new")
    assert nightly.commit_of(tree) == commit


def test_each_step_names_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert nightly.main(["--list"]) == 0
    names = capsys.readouterr().out.split("\n")
    assert {"audit privacy", "mutants", "gauntlet", "figures"} < set(names)
    for each in nightly.STEPS:
        assert each.command[0] == sys.executable
        script = each.command[1]
        assert script == "-m" or (ROOT / script).is_file()


def test_the_audit_of_every_folder_of_tests_is_run() -> None:
    audited = [folder for folders in nightly.AUDITED for folder in folders]
    tests = {
        path.relative_to(ROOT / "tests").parts[0] for path in ROOT.glob("tests/*/**/test_*.py")
    }
    assert sorted(audited) == sorted(tests)
    assert not list((ROOT / "tests").glob("test_*.py"))


def test_whether_steps_can_start_is_tried_and_none_is_run(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert nightly.main(["--check"], STEPS, tree) == 1
    assert capsys.readouterr().out == "one: starts\ntwo: no luck\n\ntre: starts\n"
    assert nightly.main(["--check", "--only", "one", "tre"], STEPS, tree) == 0
    assert not (tree / "ran").exists()


def test_the_figures_are_the_last_step_and_all_others_have_a_region() -> None:
    assert [step.name for step in nightly.STEPS if step.name == "figures"] == ["figures"]
    assert nightly.STEPS[-1].name == "figures"
    regions = [name for name in figures.TABLES if name.startswith("step_")]
    assert len(regions) == len(nightly.STEPS) - 1
    assert {"step_audit_privacy", "step_bench_speed", "step_mutants"} < set(regions)


def test_every_table_of_the_figures_is_made_by_a_step() -> None:
    written = {part for step in nightly.STEPS for part in step.command if "{folder}/" in part}
    assert {f"{{folder}}/{name}.json" for name in ("gauntlet", "real_tables")} < written


def test_regions_of_pages_are_filled_with_their_tables_and_the_commit(tmp_path: Path) -> None:
    docs, folder = tmp_path / "docs", tmp_path / "abc123"
    docs.mkdir()
    folder.mkdir()
    old = "a\n<!-- figures: every_kind -->\nold\n<!-- figures: end -->\nb\n"
    (docs / "page.md").write_text(old)
    assert figures.main(folder, docs) == 0
    assert (docs / "page.md").read_text() == old
    table = "| analysis | n |\n|---|---|\n| count | 3 |\n"
    (folder / "bench-every_kind.txt").write_text(f"== every_kind\n{table}" + '{"a": 1}\n')
    for _ in range(2):
        figures.main(folder, docs)
        assert (docs / "page.md").read_text() == (
            "a\n<!-- figures: every_kind -->\n<small>Made at commit `abc123`.</small>\n\n"
            f"{table}\n<!-- figures: end -->\nb\n"
        )


def test_a_nights_page_shows_how_each_step_ended_and_what_benchmarks_printed(
    tmp_path: Path,
) -> None:
    state = {"audit": "RED", "bench cells": "green", "mutants": "green"}
    (tmp_path / "state.json").write_text(
        json.dumps({name: {"result": result, "seconds": 90} for name, result in state.items()})
    )
    (tmp_path / "audit.txt").write_text("FAILED tests/a\n=== 1 failed, 2 passed ===\n")
    (tmp_path / "bench-cells.txt").write_text(f'== cells\n| n |\nin {figures.ROOT}\n{{"a": 1}}\n')
    (tmp_path / "mutants.txt").touch()
    assert figures.ended("audit")(tmp_path) == "**RED**, 1.5 minutes: 1 failed, 2 passed"
    assert figures.ended("bench cells")(tmp_path) == (
        "**green**, 1.5 minutes.\n\n```text\n| n |\n```"
    )
    objects = ({"same": 1, "n": 5, "a": 0.5}, {"same": 1, "n": 6}, {"of": {"n": 7}})
    lines = "".join(json.dumps(each) + "\n" for each in objects)
    (tmp_path / "bench-cells.txt").write_text(f"== cells\n{lines}")
    assert figures.ended("bench cells")(tmp_path) == (
        "**green**, 1.5 minutes.\n\n```text\n| n | a |\n| --- | --- |\n| 5 | 0.5 |\n| 6 |  |\n"
        '{"of": {"n": 7}}\n```'
    )
    (tmp_path / "bench-cells.txt").write_text('{"n": 5}\n')
    assert figures.ended("bench cells")(tmp_path) == (
        "**green**, 1.5 minutes.\n\n```text\n| n |\n| --- |\n| 5 |\n```"
    )
    (tmp_path / "audit.passed").write_text("tests/a::b\ntests/a::c\ntests/a::d\n")
    assert figures.ended("audit")(tmp_path) == (
        "**RED**, 1.5 minutes of the last part, 3 tests passed in all: 1 failed, 2 passed"
    )
    assert figures.ended("mutants")(tmp_path) == "**green**, 1.5 minutes."
    assert figures.ended("gauntlet")(tmp_path) is None
    assert figures.ended("audit")(tmp_path / "none") is None


def test_each_region_of_the_documentation_has_a_table_and_each_table_a_region() -> None:
    asked = [
        found[1]
        for path in figures.pages(ROOT / "docs")
        for found in figures.REGION.finditer(path.read_text("utf-8"))
    ]
    assert sorted(asked) == sorted(figures.TABLES)


def test_named_tests_are_summed_up_by_test_and_by_law() -> None:
    lines = named_tests_tables.parsed(
        [
            "== named_tests",
            "| test | law | n | ε | level | SciPy | power | SciPy | coverage, none | effect |",
            "|---|---|---|---|---|---|---|---|---|---|",
            "| t_test | normal | 500 | 0.5 | .040 | .050 | .150 | .810 | .960 | .940 |",
            "| t_test | normal | 500 | 1 | .080 | .050 | .350 | .810 | .950 | nan |",
            json.dumps({"benchmark": "named_tests"}),
        ]
    )
    assert named_tests_tables.levels(lines).splitlines()[2:] == [
        "| `t_test` | 2 | .060 | .040–.080 | 1 | .050 | .050–.050 | 2 | .95 | .94 |"
    ]
    assert named_tests_tables.powers(lines).splitlines()[2:] == [
        "| `t_test` | normal | .15 / .35 (.81) |"
    ]


TESTS = """
def test_one():
    assert 1 == 1


def test_two():
    assert 1 == {}
"""


@pytest.mark.slow
def test_an_audit_goes_on_with_the_tests_that_have_not_passed(tmp_path: Path) -> None:
    plugins = ("-p", "support.passed", "-p", "xdist.plugin")
    command = (sys.executable, "-m", "pytest", *plugins, "-n", "2", "--passed", "names")
    own = {"PYTHONPATH": str(ROOT / "tests"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ends = []
    for two in (2, 1, 1):
        (tmp_path / "test_it.py").write_text(TESTS.format(two))
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=os.environ | own | {"PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        ends.append((done.returncode, done.stdout))
    assert [code for code, _ in ends] == [1, 0, 0]
    assert "1 failed, 1 passed" in ends[0][1]
    assert "passed before: 1" in ends[1][1]
    assert "1 passed" in ends[1][1]
    assert "passed before: 2" in ends[2][1]
    names = (tmp_path / "names").read_text().split()
    assert sorted(names) == ["test_it.py::test_one", "test_it.py::test_two"]
