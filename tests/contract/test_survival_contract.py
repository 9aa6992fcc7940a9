# SPDX-License-Identifier: Apache-2.0
"""Questions about times to an event over HTTP, read and drawn by the client's classes."""

from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from reticent.kinds.cumulative_incidence import CumulativeIncidences
from reticent.kinds.log_rank import LogRankTest
from reticent.kinds.survival_curve import SurvivalCurves
from reticent_server.pipeline.services import Services
from support.installations.small import Api, Installation, request_body

mpl.use("Agg")
CUTS = [2.0, 4.0, 6.0, 8.0]


@pytest.fixture
def api(services: Services, installation: Installation) -> Api:
    return Api(services, installation.keys["ana"])


@pytest.fixture(autouse=True)
def figures() -> Iterator[None]:
    """Every figure can be drawn, and is closed."""
    from matplotlib import pyplot as plt

    yield
    for figure in plt.get_fignums():
        plt.figure(figure).canvas.draw()
    plt.close("all")


def asked(api: Api, **query: Any) -> Any:
    query = {"time": "k", "event": "b", "cuts": CUTS} | query
    reply = api.post("/v1/releases", request_body(query, epsilon=20.0))
    assert reply.status_code == 201, reply.text
    return reply.json()


@pytest.mark.slow
def test_one_curve(api: Api) -> None:
    found = SurvivalCurves(asked(api, kind="survival_curve"))
    found.check()
    curve = found.curve
    assert curve.times.tolist() == CUTS
    assert found.horizon == 8.0
    assert found.nobs == 400
    assert (np.diff(curve.survival) <= 0).all()
    low, high = curve.conf_int().T
    assert ((low <= curve.survival) & (curve.survival <= high)).all()
    assert (curve.bse >= curve.privacy_se).all()
    # k = 0 … 9 equally often, the odd ones with the event: half of those at 9 are left.
    assert curve.at_risk[0] == pytest.approx(400, abs=1)
    assert curve.at(1.0) == (1.0, 1.0, 1.0)
    assert curve.at(4.5)[0] == curve.survival[1]
    with pytest.raises(ValueError, match="times"):
        curve.at(9.5)
    assert "median" in str(found.summary())
    assert len(found.to_frame()) == 4
    steps = found.plot().lines[0]
    assert steps.get_ydata()[1:].tolist() == curve.survival.tolist()


@pytest.mark.slow
def test_curves_by_group(api: Api) -> None:
    found = SurvivalCurves(asked(api, kind="survival_curve", by="g"))
    found.check()
    assert list(found.curves) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="curves"):
        _ = found.curve
    assert len(found.plot().lines) == 3
    assert set(found.to_frame()["group"]) == {"a", "b", "c"}
    assert "b" in str(found.summary())


@pytest.mark.slow
def test_a_group_without_times_is_shown_as_such(api: Api) -> None:
    document = asked(api, kind="survival_curve", by="g", where="k < 0")
    found = SurvivalCurves(document)
    found.check()
    assert "so there may be none" in str(found.summary())
    found.plot()


@pytest.mark.slow
def test_a_log_rank_test(api: Api) -> None:
    found = LogRankTest(asked(api, kind="log_rank", by="g"))
    found.check()
    assert found.df == 2
    assert 0 <= found.pvalue <= 1
    assert found.until in CUTS
    assert found.observed_minus_expected.names == ("a", "b", "c")
    assert float(np.sum(found.observed_minus_expected)) == pytest.approx(0, abs=1e-9)
    assert "degrees of freedom" in str(found.summary())
    assert found.to_frame().shape == (1, 3)
    assert len(found.plot().patches) == 3


def test_a_log_rank_test_with_strata_a_trend_and_late_weights(api: Api) -> None:
    more = {"strata": "b2", "trend": True, "emphasis": [0, 1]}
    query = {"kind": "log_rank", "by": "g"} | more
    refused = api.post(
        "/v1/releases", request_body({"time": "k", "event": "b"} | query, epsilon=1.0)
    )
    assert refused.status_code == 422
    found = LogRankTest(asked(api, kind="log_rank", by="g", trend=True, emphasis=[0, 1]))
    found.check()
    assert found.df == 1
    assert "trend" in str(found.summary())
    assert "γ = 1" in str(found.summary())


@pytest.mark.slow
def test_cumulative_incidences_by_group(api: Api) -> None:
    query = {"event": "g", "by": "b", "censored": "c"}
    found = CumulativeIncidences(asked(api, kind="cumulative_incidence", **query))
    found.check()
    assert found.causes == ("a", "b")
    assert len(found.curves) == 4
    assert found.curves[0].times.tolist() == CUTS
    assert set(found.tests) == {"a", "b"}
    assert "Gray" in str(found.summary())
    found.plot()


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", ["survival_curve", "log_rank"])
@pytest.mark.parametrize(
    "wrong",
    [
        {"cuts": [3, 2]},
        {"cuts": []},
        {"event": "x"},
        {"time": "g"},
        {"by": "nobody"},
        {"cuts": "2"},
        {"x": 1},
    ],
)
def test_a_question_that_cannot_be_answered_is_refused(api: Api, kind: str, wrong: Any) -> None:
    query = {"kind": kind, "time": "k", "event": "b", "by": "g"} | wrong
    reply = api.post("/v1/releases", request_body(query, epsilon=1.0))
    assert reply.status_code == 422
    assert reply.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("kind", ["survival_curve", "log_rank"])
def test_a_plan_says_what_the_noise_would_be(api: Api, kind: str) -> None:
    query = {"kind": kind, "time": "k", "event": "b", "by": "g"}
    plans = [api.post("/v1/plans", request_body(query, epsilon=e)).json() for e in (1.0, 4.0)]
    noise = [plan["forecast"]["privacy_standard_error"] for plan in plans]
    assert noise[0] > 2 * noise[1] > 0
    assert plans[0]["forecast"]["cuts"] == [float(k) for k in range(1, 10)]
