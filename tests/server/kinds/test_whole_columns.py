# SPDX-License-Identifier: Apache-2.0
from reticent_server.domain.facts import ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.kinds.shared.columns import profile_quantiles, released_quartiles


def facts(probabilities: tuple[float, ...]) -> DatasetFacts:
    column = Column(name="x", kind=ColumnKind.NUMERIC, lower=0.0, upper=1.0)
    shown = ColumnProfile(quantiles=probabilities, probabilities=probabilities)
    return DatasetFacts(
        "d",
        "d",
        1,
        "v",
        100,
        Schema(columns=(column,)),
        Profile({"x": shown} if probabilities else {}),
    )


def test_a_profile_without_its_tails_gives_the_nearest_that_it_has() -> None:
    known = facts((0.1, 0.25, 0.5, 0.75, 0.9))
    assert profile_quantiles(known, "x", (0.05, 0.25, 0.5, 0.95)) == (0.1, 0.25, 0.5, 0.9)
    assert released_quartiles(known, "x") == (0.25, 0.5, 0.75)
    assert released_quartiles(facts((0.5,)), "x") is None
    assert profile_quantiles(facts(()), "x", (0.5,)) is None
