# SPDX-License-Identifier: Apache-2.0
"""Degenerate data over HTTP, for every family and test: a reply with honest flags, or No Reply.

Never another status, never an exception: separated responses, responses that are all zero or all
equal, a constant column, a category with one record, and a mask that leaves nobody.
"""

import math
import shutil
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from reticent_server.cli.dataset_load import load_dataset
from support.databases.migrated import SetClock
from support.installations.small import Api, _add_analyst, opened
from support.seeds import seeded

N = 240
SCHEMA = """\
description: Odd columns
columns:
  y: {kind: numeric, lower: -10, upper: 10}
  x: {kind: numeric, lower: -5, upper: 5}
  flat: {kind: numeric, lower: 0, upper: 9}
  g: {kind: categorical, levels: [a, b, once]}
  k: {kind: integer, lower: 0, upper: 9}
  zero: {kind: integer, lower: 0, upper: 9}
  sign: {kind: boolean}
  never: {kind: boolean}
"""
NOBODY = "x > 4.9"
LINEAR = ("y ~ x + flat + C(g)", "flat ~ x", "y ~ 0 + flat")
FAMILIES = {
    "binomial": ("sign ~ x", "sign ~ x + flat + C(g)", "never ~ x"),
    "poisson": ("k ~ x + flat + C(g)", "zero ~ x"),
    "gamma": ("k ~ x + flat + C(g)", "zero ~ x"),
    "negative_binomial": ("k ~ x + flat + C(g)", "zero ~ x"),
    "gaussian": ("y ~ x + flat + C(g)", "flat ~ x"),
}


@pytest.fixture(scope="module")
def api(installation_template: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    directory = tmp_path_factory.mktemp("odd") / "installation"
    shutil.copytree(installation_template.directory, directory)
    installation = replace(installation_template, directory=directory)
    (directory / "odd.yaml").write_text(SCHEMA)
    (directory / "odd.csv").write_text(odd_rows())
    load_dataset(installation.settings, "odd", directory / "odd.csv", directory / "odd.yaml")
    with opened(installation.settings, SetClock()) as services:
        tiers = ("unconditional", "conditional")
        policy = replace(services.catalog.facts("odd").policy, tiers=tiers)
        services.catalog.set_policy("odd", policy, by="t")
        services.ledger.set_population_cap("odd", epsilon=1e5, delta=0.01, rule="basic", by="t")
        yield Api(services, _add_analyst(services, "odile", "odd", 1e5, 1e-2, "basic"))


def odd_rows() -> Any:
    rng = seeded(6)
    x = rng.normal(size=N).clip(-4, 4)
    lines = ["y,x,flat,g,k,zero,sign,never"]
    for i in range(N):
        g = "once" if i == 7 else "ab"[i % 2]
        cells = (f"{1 + x[i]:.3f}", f"{x[i]:.3f}", "3", g, i % 6, 0, int(x[i] > 0), 0)
        lines.append(",".join(map(str, cells)))
    return "\n".join(lines) + "\n"


def answer(api: Any, epsilon: float = 40.0, **query: Any) -> Any:
    """The release's status and result, checked for what every kind promises."""
    body = {"dataset": "odd", "query": query, "privacy": {"epsilon": epsilon, "delta": 1e-6}}
    response = api.post("/v1/releases", body)
    assert response.status_code == 201, response.text
    release = response.json()
    assert release["status"] in {"reply", "no_reply"}
    assert (release["result"] is None) is (release["status"] == "no_reply")
    assert release["charged"]["epsilon"] <= epsilon
    return release["result"]


def check_fit(fit: Any) -> None:
    """As many flags as terms; an interval and a p-value just where a coefficient is estimable."""
    flags = fit["estimable"]
    assert len(flags) == len(fit["terms"]) == len(fit["coefficients"])
    known = [c is not None for c in fit["coefficients"]]  # null: of a level without records
    assert all(known[place] for place, flag in enumerate(flags) if flag)
    told = [number for number in (*fit["coefficients"], *fit["standard_errors"]) if number]
    assert all(map(math.isfinite, told))
    assert [p is not None for p in fit["p_values"]] == flags
    assert [pair != [None, None] for pair in fit["confidence_intervals"]] == flags


def glm(family: Any) -> Any:
    """The fields of a model of a family."""
    shape = {"dispersion": 0.5} if family == "negative_binomial" else {}
    return {"kind": "glm", "family": family} | shape


MODELS = [
    *({"kind": "linear_regression", "formula": f} for f in LINEAR),
    {"kind": "linear_regression", "formula": LINEAR[0], "loss": "tukey"},
    {"kind": "linear_regression", "formula": LINEAR[1], "loss": "tukey"},
    {"kind": "linear_regression", "formula": LINEAR[0], "mechanism": "gradient_descent"},
    *(glm(k) | {"formula": f} for k, fs in FAMILIES.items() for f in fs),
]
EMPTY = [m | {"where": NOBODY} for m in MODELS if m["formula"].endswith("~ x") or "loss" in m]


@pytest.mark.slow
@pytest.mark.sample(16)
@pytest.mark.parametrize("query", MODELS + EMPTY, ids=lambda q: " ".join(map(str, q.values())))
def test_every_model_is_answered(api: Any, query: dict[str, Any]) -> None:
    check_fit(answer(api, **query))


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("calibration", ["ptr", "asymptotic"])
def test_fits_by_influence_reply_or_do_not(api: Any, calibration: str) -> None:
    ways = {"mechanism": "influence", "calibration": calibration}
    models = [
        *({"kind": "linear_regression", "formula": f} for f in ("flat ~ x", "y ~ flat")),
        *({"kind": "glm", "family": "binomial", "formula": f} for f in ("sign ~ x", "never ~ x")),
    ]
    for model in models:
        found = answer(api, **model, **ways)
        assert found is None or len(found["coefficients"]) == len(found["terms"])


@pytest.mark.slow
@pytest.mark.sample(8)
@pytest.mark.parametrize("test", ["wald", "lr", pytest.param("score", marks=pytest.mark.audit)])
@pytest.mark.parametrize("family", [None, *FAMILIES])
def test_every_test_is_answered(api: Any, family: str | None, test: str) -> None:
    asked = (glm(family) if family else {}) | {"kind": "hypothesis_test", "test": test}
    first, *others = FAMILIES.get(family, LINEAR[:1])
    cases = [(f, "x = 0", {}) for f in (first, *others)] + [(first, "x = 0", {"where": NOBODY})]
    rich = next(f for f in (first, *others) if "flat +" in f)
    for formula, hypothesis, mask in [*cases, (rich, "flat = 0", {})]:
        check_test(answer(api, formula=formula, hypothesis=[hypothesis], **asked, **mask))
    if test == "lr":
        table = answer(api, formula=rich, **asked)["table"]
        assert [row["term"] for row in table] == ["x", "flat", "C(g)"]
        for row in table:
            check_test(row)


def check_test(row: Any) -> None:
    assert (row["p_value"] is not None) is row["estimable"]
    assert row["p_value"] is None or 0 <= row["p_value"] <= 1


@pytest.mark.slow
def test_location_and_scale_are_answered(api: Any) -> None:
    by_influence = {"mechanism": "influence", "calibration": "asymptotic"}
    ways = [
        *(("flat", way) for way in ({}, by_influence)),
        *(("zero", way) for way in ({}, by_influence)),
        ("y", {"where": NOBODY}),
    ]
    for column, more in ways:
        found = answer(api, kind="location_scale", column=column, **more)
        numbers = [found["location"], found["scale"], *found["standard_errors"]]
        assert all(map(math.isfinite, numbers))


@pytest.mark.audit
def test_what_the_data_do_not_tell_is_flagged(api: Any) -> None:
    """A constant column, beside an intercept; but by chance (2 % of the fits), hence several of
    them.
    """
    flagged = 0
    for family, formulas in (FAMILIES | {None: LINEAR[:1]}).items():
        kind = glm(family) if family else {"kind": "linear_regression"}
        formula = next(f for f in formulas if "flat +" in f)
        for _ in range(2):
            fit = answer(api, formula=formula, **kind)
            flags = dict(zip(fit["terms"], fit["estimable"], strict=True))
            flagged += not flags["flat"]
            said = ("Not identifiable", "No intervals are given")
            assert flags["flat"] or any(text.startswith(said) for text in fit["warnings"])
    assert flagged >= 6
