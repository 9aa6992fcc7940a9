# SPDX-License-Identifier: Apache-2.0
"""A data set's twin: the columns it draws, and that every method answers there as on the data
set.
"""

import sys
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

import reticent
from reticent.kinds import class_of
from reticent_server.pipeline.profile import release_profile
from reticent_server.pipeline.services import Services
from support.client.replying_server import DATASET, Server
from support.client.stored_replies import InProcess
from support.installations.small import Api, Installation, copied, opened
from support.kinds.examples import FIELDS


@pytest.fixture(scope="module")
def people(
    installation_template: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[reticent.Dataset]:
    """The data set of a real server, with a profile."""
    directory = tmp_path_factory.mktemp("twin") / "installation"
    with (
        copied(installation_template, directory) as own,
        opened(own.settings) as services,
        client_of(services, own.keys["ana"]) as client,
    ):
        release_profile(services, "people", epsilon=50.0)
        yield client.dataset("people")


def client_of(services: Services, key: str) -> reticent.Client:
    transport = InProcess(Api(services, None))
    return reticent.Client("http://test", key=key, transport=transport, progress=False)


@pytest.fixture(scope="module")
def twin(people: reticent.Dataset) -> reticent.Twin:
    return people.twin(seed=3)


@pytest.mark.slow
def test_every_kind_answers_with_its_class_and_nothing_is_charged(twin: reticent.Twin) -> None:
    for kind, given in FIELDS.items():
        answer = getattr(twin, kind)(epsilon=10.0, **given)
        assert isinstance(answer, class_of({"kind": kind} | given) | reticent.NoReply), kind
        assert answer.status in {"reply", "no_reply"}
        assert answer.charged.epsilon == 0.0
        assert "Not for inference" in str(answer.guarantee)
        assert answer.dataset == "people (twin, not for inference)"


def test_its_answers_are_about_its_own_table(twin: reticent.Twin) -> None:
    mean = twin.mean("y", epsilon=50.0)
    assert mean.value == pytest.approx(float(twin.columns["y"].mean()), abs=0.05)
    assert twin.n == mean.result["n"] == 400
    plan = twin.plan("mean", "y", ci_ratio=1.25)
    assert 0 < plan.cost.epsilon < 10
    assert not plan.budget


def test_what_the_server_would_refuse_is_refused(twin: reticent.Twin) -> None:
    with pytest.raises(reticent.InvalidFormula, match="did you mean"):
        twin.linear_regression("y ~ xx", epsilon=1.0)
    with pytest.raises(reticent.InvalidPrivacy, match="epsilon"):
        twin.mean("y", epsilon=-1.0)
    with pytest.raises(reticent.InvalidQuery):
        twin.mean("g", epsilon=1.0)


def test_columns_follow_the_profile(people: reticent.Dataset) -> None:
    made = people.twin(n=20_000, seed=5)
    profile = people.profile()
    for column in people.schema:
        values = made.columns[column.name]
        if column.lower is not None:
            assert column.lower <= values.min() <= values.max() <= column.upper
    released = profile.quantiles("y")
    drawn = np.quantile(made.columns["y"], profile.probabilities_of("y"))
    assert np.abs(drawn - np.asarray(released))[3:-3].max() < 0.15
    counts = np.maximum(np.asarray(profile.counts("g")), 0)
    assert np.bincount(made.columns["g"].astype(int), minlength=3) / 20_000 == pytest.approx(
        counts / counts.sum(), abs=0.02
    )
    assert made.missing["m"].mean() == pytest.approx(
        (profile.missing("m") or 0) / people.n, abs=0.02
    )
    again = people.twin(n=20_000, seed=5)
    assert all((again.columns[name] == values).all() for name, values in made.columns.items())


def test_a_study_gives_it_its_correlations(people: reticent.Dataset) -> None:
    study = people.study(["y", "x"], epsilon=10.0)
    assert not isinstance(study, reticent.NoReply)
    r = study.corr().values[0, 1]
    assert abs(r) > 0.3
    made = people.twin(n=20_000, study=study)
    assert np.corrcoef(made.columns["y"], made.columns["x"])[0, 1] == pytest.approx(r, abs=0.06)
    alone = people.twin(n=20_000)
    assert abs(np.corrcoef(alone.columns["y"], alone.columns["x"])[0, 1]) < 0.05


def test_its_frame_is_labelled_in_every_column(twin: reticent.Twin) -> None:
    frame = twin.to_frame()
    assert set(frame["g"]) <= {"a", "b", "c"}
    for name in frame:
        assert frame[name].attrs["label"] == "synthetic, not for inference"
    assert frame["m"].isna().mean() == pytest.approx(twin.missing["m"].mean())
    assert "not for inference" in repr(twin)


def test_without_a_profile_columns_are_even_and_persons_have_all_their_rows() -> None:
    server = Server()
    document: dict[str, Any] = DATASET | {
        "profile": None,
        "unit": {"column": "person", "max_rows": 3},
    }
    server.always(200, document)
    made = server.client().dataset("houses").twin(n=2_000)
    assert len(made.columns["price"]) == 6_000
    assert made.columns["price"].mean() == pytest.approx(5e6, rel=0.05)
    assert set(made.columns["zone"]) == {0.0, 1.0, 2.0}
    assert set(made.columns["new"]) == {0.0, 1.0}
    assert made.mean("price", epsilon=5.0).result["n"] == 2_000
    persons = made.persons(visits="count()")
    assert persons.mean("visits", epsilon=50.0).value == pytest.approx(3.0, abs=0.2)


def test_what_no_twin_can_be_made_of_is_said(people: reticent.Dataset) -> None:
    with pytest.raises(reticent.InvalidQuery, match="whole number"):
        people.twin(n=0)
    server = Server()
    server.always(200, DATASET | {"tables": {"visits": 3}})
    linked = server.client().dataset("houses")
    with pytest.raises(reticent.InvalidQuery, match="several tables"):
        linked.twin()


def test_without_the_server_s_package_the_table_is_there_and_answers_say_what_to_install(
    people: reticent.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "reticent_server.twin", None)
    made = people.twin(n=10)
    assert len(made.to_frame()) == 10
    with pytest.raises(reticent.MissingDependency, match=r"reticent\[server\]"):
        made.count(epsilon=1.0)


def test_nothing_is_sent_for_its_answers() -> None:
    server = Server()
    server.always(200, DATASET | {"features": {}, "tables": {}})
    made = server.client().dataset("houses").twin(n=50)
    sent = len(server.requests)
    server.answer = lambda _: httpx.Response(500)
    assert made.count(epsilon=10.0).result["n"] == 50
    assert len(server.requests) == sent
