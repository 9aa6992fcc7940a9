# SPDX-License-Identifier: Apache-2.0
"""The client is complete: every kind that the server answers can be asked, shown, kept and
drawn.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

import reticent
from reticent._queries import BUILDERS
from reticent.kinds import BY_GROUP, KINDS, class_of, result_class
from reticent_server.app import create_app
from reticent_server.pipeline.services import Services
from support.installations.in_thread import in_thread
from support.installations.small import Installation
from support.kinds.examples import FIELDS, QUERIES

mpl.use("Agg")


@pytest.fixture
def dataset(services: Services, installation: Installation) -> Iterator[reticent.Dataset]:
    with (
        in_thread(create_app(services)) as served,
        reticent.Client(served.url, key=installation.keys["ana"], retries=0) as client,
    ):
        yield client.dataset("people")


def test_every_kind_has_a_method_a_query_and_a_class() -> None:
    assert set(KINDS) == set(FIELDS)
    assert result_class("of a later version") is reticent.Release
    for kind in FIELDS:
        assert callable(getattr(reticent.Dataset, kind))
        assert kind in BUILDERS
        assert result_class(kind) in {getattr(reticent, name) for name in reticent.__all__}


ASKED = [
    *FIELDS.items(),
    *(
        (query["kind"], {name: value for name, value in query.items() if name != "kind"})
        for query in QUERIES.values()
        if query["kind"] in BY_GROUP and "by" in query
    ),
]


def test_kinds_with_a_class_for_groups_are_asked_by_group() -> None:
    assert {kind for kind, fields in ASKED if "by" in fields} >= set(BY_GROUP)


@pytest.mark.slow
@pytest.mark.sample(32)
@pytest.mark.parametrize(("kind", "fields"), ASKED, ids=[f"{k}-{'by' in f}" for k, f in ASKED])
def test_an_answer_can_be_shown_kept_and_drawn(
    dataset: reticent.Dataset, kind: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    from matplotlib import pyplot as plt

    plan = dataset.plan(kind, epsilon=10.0, **fields)
    assert plan.cost.epsilon == 10.0
    assert "Cost: ε = 10" in repr(plan)
    answer = getattr(dataset, kind)(epsilon=10.0, **fields)
    assert isinstance(answer, reticent.NoReply | class_of({"kind": kind} | fields))
    assert answer.charged == plan.cost
    for shown in (str(answer.summary()), repr(answer), answer._repr_html_()):
        assert "differentially private" in " ".join(shown.split())
    answer.save(tmp_path / "release.json")
    again = reticent.load(tmp_path / "release.json")
    assert type(again) is type(answer)
    assert str(again.summary()) == str(answer.summary())
    if isinstance(answer, reticent.NoReply):
        assert answer.status == "no_reply"
        return
    assert type(answer).to_frame is not reticent.Release.to_frame
    assert len(answer.to_frame()) >= 1
    drawn = answer.plot()
    getattr(drawn, "figure", drawn).savefig(tmp_path / "plot.png")
    plt.close("all")
    assert (tmp_path / "plot.png").stat().st_size > 1_000
