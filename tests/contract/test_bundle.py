# SPDX-License-Identifier: Apache-2.0
"""A bundle of questions against a real server: planned, paid for once, kept, and rebuilt without
the server.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

import reticent
from reticent import _spending
from reticent.__main__ import main
from reticent_server.pipeline.profile import release_profile
from reticent_server.pipeline.services import Services
from support.client.stored_replies import InProcess
from support.installations.small import Api, Installation

mpl.use("Agg")
QUESTIONS: dict[str, Any] = {
    "average": {"kind": "mean", "column": "y", "ci_ratio": 1.25},
    "model": {"kind": "linear_regression", "formula": "y ~ x", "ci_ratio": {"x": 1.5}},
    "homes": {"kind": "count", "where": "x > 0", "half_width": 30},
    "middle": {"kind": "median", "column": "y", "epsilon": 0.4},
}
DOCUMENT = {"title": "A registered analysis", "dataset": "people", "queries": QUESTIONS}
YAML = """\
title: A registered analysis
dataset: people
queries:
  average: {kind: mean, column: y, ci_ratio: 1.25}
  model: {kind: linear_regression, formula: y ~ x, ci_ratio: {x: 1.5}}
  homes: {kind: count, where: x > 0, half_width: 30}
  middle: {kind: median, column: y, epsilon: 0.4}
"""


@pytest.fixture
def client(services: Services, installation: Installation) -> Iterator[reticent.Client]:
    release_profile(services, "people", epsilon=50.0)
    transport = InProcess(Api(services, None))
    with reticent.Client(
        "http://test", key=installation.keys["ana"], transport=transport, progress=False
    ) as made:
        yield made


@pytest.fixture
def people(client: reticent.Client) -> reticent.Dataset:
    return client.dataset("people")


@pytest.mark.slow
def test_a_plan_is_one_for_all_and_its_widths_are_those_asked_for(people: reticent.Dataset) -> None:
    planned = reticent.bundle(DOCUMENT).plan(people)
    assert planned.factor == 1.0
    assert planned.plans["average"].ci_ratio["mean"] == pytest.approx(1.25, abs=0.01)
    assert planned.plans["model"].ci_ratio["x"] == pytest.approx(1.5, abs=0.02)
    assert planned.plans["homes"].half_width["count"] == pytest.approx(30, rel=0.03)
    assert planned.plans["middle"].cost.epsilon == 0.4
    assert planned.epsilon == pytest.approx(
        sum(float(each.cost.epsilon or 0) for each in planned.plans.values())
    )
    assert planned.covered
    assert "Your budgets cover it" in str(planned)


@pytest.mark.slow
def test_a_smaller_budget_stretches_all_widths_by_one_factor(people: reticent.Dataset) -> None:
    quick = {name: query for name, query in QUESTIONS.items() if name != "model"}
    bundle = reticent.bundle({"queries": quick})
    asked = bundle.plan(people)
    least = 0.7 * asked.epsilon
    planned = bundle.plan(people, epsilon=least)
    assert 0.93 * least < planned.epsilon <= least
    assert planned.factor > 1
    ratio = planned.plans["average"].ci_ratio["mean"]
    assert ratio == pytest.approx(1 + 0.25 * planned.factor, rel=0.02)
    assert planned.plans["homes"].half_width["count"] == pytest.approx(
        30 * planned.factor, rel=0.03
    )
    with pytest.raises(reticent.InvalidPrivacy, match="does not pay for it"):
        bundle.plan(people, epsilon=0.401)


@pytest.mark.slow
def test_a_run_is_paid_for_once_and_its_archive_needs_no_server(
    client: reticent.Client, people: reticent.Dataset, tmp_path: Path
) -> None:
    bundle, folder = reticent.bundle(DOCUMENT), tmp_path / "results"
    archive = bundle.run(people, folder, confirm=True)
    assert list(archive) == list(QUESTIONS)
    spent = client.budget()["people"].spent
    (folder / "releases/model.json").unlink()  # as an interrupted run would leave it
    again = bundle.run(people, folder, confirm=True)
    assert client.budget()["people"].spent == spent
    assert len(client.releases()) == 4
    assert again["model"].params["x"] == archive["model"].params["x"]
    client.close()
    made = {path.name for path in reticent.Archive.read(folder).rebuild()}
    assert {"average.txt", "model.txt", "model.csv", "model.png", "middle.txt"} <= made
    assert "x" in (folder / "tables/model.csv").read_text()
    digest = json.loads((folder / "bundle.json").read_text())["digest"]
    assert digest == bundle.digest
    with pytest.raises(KeyError, match="average"):
        archive["nowhere"]
    _edited_archives_are_not_rebuilt(folder)


def _edited_archives_are_not_rebuilt(folder: Path) -> None:
    """An edited answer, two that are exchanged, and questions that were changed afterwards."""
    archive = reticent.Archive.read(folder)
    average, homes = (folder / f"releases/{name}.json" for name in ("average", "homes"))
    kept = {place: place.read_text() for place in (average, homes, folder / "bundle.json")}
    exchanged = {average: kept[homes], homes: kept[average]}
    edits = (
        ({average: kept[average].replace('"version": 1', '"version": 2')}, "not as it was kept"),
        (exchanged, "not as it was kept"),
        ({folder / "bundle.json": kept[folder / "bundle.json"].replace("1.25", "1.5")}, "digest"),
    )
    for changes, said in edits:
        for place, text in (kept | changes).items():
            place.write_text(text)
        with pytest.raises(reticent.InvalidQuery, match=said):
            archive.rebuild()
    for place, text in kept.items():
        place.write_text(text)
    assert archive.rebuild()


@pytest.mark.slow
def test_nothing_is_spent_without_a_yes(
    client: reticent.Client,
    people: reticent.Dataset,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bundle = reticent.bundle(DOCUMENT)
    monkeypatch.setattr("reticent._bundle.at_prompt", lambda: None)
    with pytest.raises(reticent.ConfirmationNeeded, match="average"):
        bundle.run(people, tmp_path / "one")
    monkeypatch.setattr("reticent._bundle.at_prompt", lambda: lambda _: False)
    with pytest.raises(reticent.ConfirmationNeeded):
        bundle.run(people, tmp_path / "two")
    dear = {"queries": {f"q{k}": {"kind": "count", "epsilon": 90.0} for k in range(60)}}
    with pytest.raises(reticent.NotSpent, match="do not cover"):
        reticent.bundle(dear).run(people, tmp_path / "three", confirm=True)
    assert not client.releases()
    assert _spending.at_prompt


def test_another_bundle_needs_another_folder(people: reticent.Dataset, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    cheap = {"queries": {"homes": {"kind": "count", "epsilon": 0.1}}}
    reticent.bundle(cheap).run(people, folder, confirm=True)
    with pytest.raises(reticent.InvalidQuery, match="another bundle"):
        reticent.bundle(DOCUMENT).run(people, folder, confirm=True)
    with pytest.raises(reticent.InvalidQuery, match="not empty"):
        reticent.bundle(DOCUMENT).run(people, tmp_path, confirm=True)
    with pytest.raises(reticent.InvalidQuery, match="no archive"):
        reticent.Archive.read(tmp_path / "none")
    with pytest.raises(reticent.InvalidQuery, match="about people"):
        reticent.bundle({**cheap, "dataset": "people"}).plan(
            reticent.Dataset.from_json({**people._document, "name": "other"}, people._http)
        )


@pytest.mark.slow
def test_a_twin_rehearses_it(people: reticent.Dataset, tmp_path: Path) -> None:
    archive = reticent.bundle(DOCUMENT).run(people.twin(), tmp_path / "rehearsal", confirm=True)
    assert archive["average"].charged.epsilon == 0.0
    assert archive.rebuild()


def test_files_are_yaml_or_json(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(YAML)
    (tmp_path / "b.json").write_text(json.dumps(DOCUMENT))
    read = {reticent.bundle(tmp_path / name).digest for name in ("b.yaml", "b.json")}
    assert read == {reticent.bundle(DOCUMENT).digest}
    (tmp_path / "bad.yaml").write_text("queries: [")
    with pytest.raises(reticent.InvalidQuery, match="cannot be read"):
        reticent.bundle(tmp_path / "bad.yaml")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({}, "queries"),
        ({"queries": {"a": "count"}}, "mapping with its kind"),
        ({"queries": {"a": {"kind": "count"}}}, "give epsilon"),
        ({"queries": {"a": {"kind": "count", "epsilon": 1}}, "author": "me"}, "no author"),
        (
            {"queries": {k: {"kind": "count", "epsilon": 1} for k in ("a b", "a?b")}},
            "share a file",
        ),
    ],
)
def test_a_bundle_that_cannot_be_read_says_why(content: Any, sentence: str) -> None:
    with pytest.raises(reticent.InvalidRequest, match=sentence):
        reticent.bundle(content)


@pytest.mark.slow
def test_the_commands(
    client: reticent.Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("reticent.__main__.Client", lambda _url: client)
    monkeypatch.setattr(reticent.Client, "close", lambda _self: None)
    file, folder = tmp_path / "b.yaml", tmp_path / "results"
    file.write_text("queries:\n  homes: {kind: count, half_width: 30}\n")
    place = [str(file), "--url", "http://test"]
    assert main(["plan", *place]) == 1
    assert "--dataset" in capsys.readouterr().err
    assert main(["plan", *place, "--dataset", "people"]) == 0
    assert "homes" in capsys.readouterr().out
    run = ["run", str(file), str(folder), "--url", "http://test", "--dataset", "people"]
    monkeypatch.setattr("reticent._bundle.at_prompt", lambda: None)
    assert main(run) == 1
    assert main([*run, "--epsilon", "1"]) == 0
    assert main(["rebuild", str(folder)]) == 0
    assert "homes.txt" in capsys.readouterr().out
