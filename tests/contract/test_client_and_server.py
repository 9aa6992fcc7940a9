# SPDX-License-Identifier: Apache-2.0
"""The real client against the real server over a loopback socket."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import reticent
from reticent_server.app import create_app
from reticent_server.domain.facts import PROFILE_PROBABILITIES
from reticent_server.pipeline.profile import release_profile
from reticent_server.pipeline.services import Services
from support.installations.in_thread import in_thread
from support.installations.small import Installation

MODEL = "y ~ x + C(g) + b"


@pytest.fixture
def url(services: Services) -> Iterator[str]:
    """The address of the application, served by a thread of this process."""
    with in_thread(create_app(services)) as served:
        yield served.url


@pytest.fixture
def client(url: str, installation: Installation) -> Iterator[reticent.Client]:
    with reticent.Client(url, key=installation.keys["ana"], retries=0) as client:
        yield client


@pytest.mark.slow
def test_a_session(client: reticent.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    (dataset,) = client.datasets()
    assert (dataset.name, dataset.version, dataset.n) == ("people", 1, 400)
    assert [c.name for c in dataset.schema] == ["y", "x", "k", "g", "b", "m"]
    assert dataset.schema["g"].levels == ("a", "b", "c")
    assert dataset.schema["k"].upper == 9
    assert dataset.schema["m"].missing == ("",)

    plan = dataset.plan("linear_regression", MODEL, epsilon=20.0)
    fit = dataset.linear_regression(MODEL, epsilon=20.0)
    assert isinstance(fit, reticent.RegressionResults)
    assert (fit.charged, fit.guarantee) == (plan.cost, plan.guarantee)
    assert fit.names == ("Intercept", "x", "C(g)[b]", "C(g)[c]", "b")
    assert fit.cov_params().shape == (5, 5)
    assert abs(fit.params["x"] - 2) < 6 * fit.bse["x"]
    assert "y ~ x + C(g) + b" in str(fit.summary())

    count = dataset.count('g == "a"', epsilon=5.0)
    mean = dataset.mean("y", epsilon=5.0)
    assert isinstance(count, reticent.Estimate)
    assert isinstance(mean, reticent.Estimate)
    assert abs(count.value - 134) < 30
    assert abs(mean.value - 1) < 2

    monkeypatch.setattr("reticent._reading._PAGE", 2)
    assert sorted(r.id for r in client.releases()) == sorted([fit.id, count.id, mean.id])
    again = client.release(fit.id)
    assert again.release == fit.release
    (account,) = client.budget()
    spent = sum(r.charged.rho or 0.0 for r in (fit, count, mean))
    assert account.spent.rho == pytest.approx(spent, abs=1e-11)


@pytest.mark.slow
def test_the_profile(client: reticent.Client, services: Services) -> None:
    assert not client.dataset("people").profile().columns
    release_profile(services, "people", epsilon=50.0)
    profile = client.dataset("people").profile()
    quantiles = profile.quantiles("x")
    assert 5 <= len(quantiles) <= len(PROFILE_PROBABILITIES)
    assert abs(quantiles["50%"]) < 0.5
    np.testing.assert_allclose(profile.counts("g"), [134, 133, 133], atol=20)
    missing = profile.missing("m")
    assert missing is not None
    assert abs(missing - 58) < 20
    assert "people" in repr(profile)


def test_the_same_key_gives_the_same_release(client: reticent.Client) -> None:
    dataset = client.dataset("people")
    first, second = (dataset.count(epsilon=0.5, idempotency_key="mine") for _ in range(2))
    assert first.release == second.release
    with pytest.raises(reticent.IdempotencyConflict):
        dataset.count(epsilon=0.6, idempotency_key="mine")


def test_every_refusal_is_the_client_s_own_error(
    client: reticent.Client, url: str, installation: Installation, services: Services
) -> None:
    dataset = client.dataset("people")
    with pytest.raises(reticent.NotFound, match="no grant"):
        client.dataset("secret")
    with pytest.raises(reticent.NotFound):
        client.release("rel_nobody")
    with pytest.raises(reticent.InvalidFormula):
        dataset.linear_regression("y ~ log(x)", epsilon=1.0)
    with pytest.raises(reticent.InvalidQuery):
        dataset.mean("nobody", epsilon=1.0)
    with pytest.raises(reticent.InvalidPrivacy):
        dataset.count(epsilon=-1.0)
    with pytest.raises(reticent.BudgetExhausted) as exhausted:
        dataset.count(epsilon=99.0, delta=0.009)
    assert exhausted.value.remaining
    policy = replace(services.catalog.facts("people").policy, max_epsilon=0.1)
    services.catalog.set_policy("people", policy, by="t")
    with pytest.raises(reticent.PolicyRefused):
        dataset.count(epsilon=1.0)
    with reticent.Client(url, key="rk_nobody") as nobody, pytest.raises(reticent.Unauthorized):
        nobody.datasets()
    assert client.releases() == []


def test_a_release_without_a_result_is_a_value(
    client: reticent.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("reticent_server.engine.workers.Workers.totals", broken)
    release = client.dataset("people").mean("y", epsilon=1.0)
    assert isinstance(release, reticent.NoReply)
    assert release.status == "failed"
    assert [type(r) for r in client.releases()] == [reticent.NoReply]
