# SPDX-License-Identifier: Apache-2.0
"""Tables, sums, quantiles and robust statistics through the real client, server, ledger and
vault.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import reticent
from reticent_server.app import create_app
from reticent_server.pipeline.services import Services
from support.installations.in_thread import in_thread
from support.installations.small import Installation


@pytest.fixture
def url(services: Services) -> Iterator[str]:
    with in_thread(create_app(services)) as served:
        yield served.url


@pytest.fixture
def client(url: str, installation: Installation) -> Iterator[reticent.Client]:
    with reticent.Client(url, key=installation.keys["ana"], retries=0) as client:
        yield client


@pytest.fixture
def dataset(client: reticent.Client) -> reticent.Dataset:
    return client.dataset("people")


def test_tables_and_sums(dataset: Any) -> None:
    histogram = dataset.histogram("y", [-10, 0, 2, 10], epsilon=5.0)
    assert histogram.labels == ("[-10, 0)", "[0, 2)", "[2, 10]")
    assert histogram.values.sum() == pytest.approx(400, abs=40)
    assert histogram.conf_int().shape == (3, 2)
    assert "[2, 10]" in str(histogram.summary())
    levels = dataset.histogram("g", where="k > 3", epsilon=5.0)
    assert levels.counts.names == ("a", "b", "c")
    table = dataset.crosstab(["g", "b"], epsilon=5.0)
    assert table.values.shape == (3, 2)
    assert table.independence.df == 2
    assert "Independence" in str(table.summary())
    assert list(table.to_frame().columns) == ["0", "1"]
    cube = dataset.crosstab(["g", "b", "k"], epsilon=5.0)
    assert cube.independence is None
    assert len(cube.to_frame()) == cube.values.size == 60
    total = dataset.sum("k", 'g == "a"', epsilon=5.0)
    assert isinstance(total, reticent.Estimate)
    assert total.conf_int()[0] < total.value


def test_quantiles_and_single_numbers(dataset: Any) -> None:
    found = dataset.quantiles("y", [0.9, 0.1, 0.5], epsilon=5.0)
    assert found.values["10%"] <= found.values["50%"] <= found.values["90%"]
    assert "90%" in str(found.summary())
    plan = dataset.plan(dataset.median, "y", epsilon=5.0)
    median = dataset.median("y", epsilon=5.0)
    assert median.charged == plan.cost
    assert (median.charged.delta, median.guarantee.delta) == (0.0, 0.0)
    assert "but for an event" not in median.guarantee.statement
    smooth = dataset.median("y", "smooth_sensitivity", epsilon=5.0)
    assert smooth.charged.rho_delta == smooth.charged.delta > 0
    spread = dataset.iqr("y", where="x > 0", epsilon=5.0)
    assert spread.value == spread.quartiles[1] - spread.quartiles[0] > 0
    assert spread.bin is median.quartiles is None
    assert dataset.iqr("m", epsilon=5.0).quartiles is not None
    location = dataset.m_estimate("y", tuning=1.5, base="cauchy", epsilon=5.0)
    for each in (median, smooth, location):
        assert abs(float(each) - 1) < 2
        assert str(each.summary())


@pytest.mark.slow
def test_a_reply_or_no_reply_is_a_release_that_has_been_charged(
    url: str, installation: Installation
) -> None:
    key = installation.analyst("rich", epsilon=500, delta=1e-3)
    client = reticent.Client(url, key=key, retries=0)
    dataset = client.dataset("people")
    answers = [
        dataset.iqr("y", "ptr", epsilon=40.0),
        dataset.iqr("y", "ptr", epsilon=0.01),
        dataset.median("y", "ptr", epsilon=40.0),
        dataset.depth_median(["x", "y"], "trimmed", eta=5.0, directions=20, epsilon=40.0),
        dataset.depth_median(["x", "y"], epsilon=0.1),
    ]
    assert [a.status for a in answers] == ["reply", "no_reply", "reply", "reply", "no_reply"]
    iqr, silent, median, depth, _ = answers
    assert iqr.bin[0] <= iqr.value <= iqr.bin[1]
    assert abs(median.value - 1) < 2
    assert depth.point.names == ("x", "y")
    assert "eta = 5" in str(depth.summary())
    assert isinstance(silent, reticent.NoReply)
    assert "No Reply" in str(silent.summary())
    assert silent.charged.epsilon == 0.01
    stored = client.release(silent.id)
    assert (stored.status, stored.result) == ("no_reply", {})
    (account,) = client.budget()
    assert account.spent.epsilon == pytest.approx(sum(a.charged.epsilon for a in answers))
    assert account.spent.delta == pytest.approx(sum(a.charged.delta for a in answers))
    client.close()


def test_an_account_in_zcdp_is_debited_rho_and_its_delta(client: Any, dataset: Any) -> None:
    silent = dataset.iqr("y", "ptr", epsilon=0.5)
    (account,) = client.budget()
    assert account.spent.rho == silent.charged.rho == 2 * 0.25**2 / 2
    assert account.spent.rho_delta == silent.charged.rho_delta == silent.charged.delta


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("iqr", ("g",)), ("iqr", ("m", "ptr")), ("iqr", ("y", "ptr", "x > 0")),
        ("median", ("m", "ptr")), ("histogram", ("y",)),
        ("histogram", ("y", [1.0])), ("crosstab", (["g"],)), ("quantiles", ("y", [1.5])),
        ("m_estimate", ("y",)), ("depth_median", (["x", "m"],)), ("sum", ("g",)),
        ("histogram", ("y", [0.0, np.nan])), ("crosstab", ("gb",)),
        ("depth_median", (["x"], "range")), ("quantiles", ("y", 0.5)),
    ],
)  # fmt: skip
def test_what_is_refused_costs_nothing(
    client: Any, dataset: Any, method: str, arguments: tuple[Any, ...]
) -> None:
    with pytest.raises(reticent.InvalidQuery):
        getattr(dataset, method)(*arguments, epsilon=1.0)
    (account,) = client.budget()
    assert account.spent.rho == 0


@pytest.mark.slow
def test_a_regression_by_gradient_descent(dataset: Any) -> None:
    plan = dataset.plan("linear_regression", "y ~ x", mechanism="gradient_descent", epsilon=20.0)
    fit = dataset.linear_regression("y ~ x", mechanism="gradient_descent", epsilon=20.0)
    assert isinstance(fit, reticent.RegressionResults)
    assert (fit.charged, fit.guarantee) == (plan.cost, plan.guarantee)
    assert "gradient descent" in fit.guarantee.mechanism
    assert abs(fit.params["x"] - 2) < 6 * fit.bse["x"]
    with pytest.raises(reticent.InvalidQuery):
        dataset.linear_regression("y ~ x", mechanism="magic", epsilon=1.0)


@pytest.mark.slow
def test_a_reply_by_influence_is_a_regression(url: str, installation: Installation) -> None:
    """400 records at ε = 90: one of fifty has no reply, so six in a row have none once in 10¹⁰
    times.
    """
    key = installation.analyst("rich", epsilon=600, delta=1e-3)
    with reticent.Client(url, key=key, retries=0) as client:
        dataset = client.dataset("people")
        for _ in range(6):
            fit = dataset.linear_regression("y ~ x", mechanism="influence", epsilon=90.0)
            if isinstance(fit, reticent.RegressionResults):
                break
    assert isinstance(fit, reticent.RegressionResults)
    assert abs(fit.params["x"] - 2) < 10 * fit.bse["x"]
    assert fit.result["calibration"] == "ptr"
    assert "influence" in str(fit.summary())


@pytest.mark.slow
def test_a_model_by_subsample_and_aggregate(client: Any, dataset: Any) -> None:
    arguments = ("linear_regression", "y ~ x")
    plan = dataset.plan("subsample_aggregate", *arguments, blocks=40, epsilon=20.0)
    bounds = [(-5, 5), (-5, 5)]
    fit = dataset.subsample_aggregate(
        dataset.linear_regression, "y ~ x", blocks=40, parameter_bounds=bounds, epsilon=20.0
    )
    assert isinstance(fit, reticent.BlockResults)
    assert fit.charged == plan.cost
    assert (fit.blocks, fit.rows_per_block, fit.bias_correction) == (40, 10, "none")
    assert abs(fit.params["x"] - 2) < 8 * fit.bse["x"]
    assert fit.block_quartiles["x"][0] < fit.block_quartiles["x"][1]
    assert "blocks: 40 of 10 records" in str(fit.summary())
    assert np.isnan(fit.cov_params()[0, 1])
    assert len(fit.to_frame()) == 2
    assert fit.conf_int(simultaneous=True).shape == (2, 2)
    with pytest.raises(reticent.NotEstimable):
        fit.wald_test("x = Intercept")
    assert client.release(fit.id).result == fit.result
    location = dataset.subsample_aggregate("location_scale", "y", "k > 2", epsilon=5.0)
    assert location.formula == "y"
    assert location.bias_correction == "jackknife"


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("arguments", "fields"),
    [
        (("glm", "b ~ x", "binomial"), {"tuning": 1.5}), (("mean", "y"), {}),
        (("linear_regression", "y ~ x"), {"mechanism": "influence"}),
        (("linear_regression", "y ~ x"), {"blocks": 200}),
        (("linear_regression", "y ~ x"), {"parameter_bounds": [(0, 1)]}),
    ],
)  # fmt: skip
def test_what_blocks_refuse_costs_nothing(
    client: Any, dataset: Any, arguments: tuple[Any, ...], fields: dict[str, Any]
) -> None:
    with pytest.raises(reticent.InvalidRequest):
        dataset.subsample_aggregate(*arguments, **fields, epsilon=1.0)
    (account,) = client.budget()
    assert account.spent.rho == 0
