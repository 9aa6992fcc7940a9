# SPDX-License-Identifier: Apache-2.0
"""What is free: data sets, profile, plans and budgets, and how they look."""

import copy
import re
from dataclasses import replace

import httpx
import pytest

import reticent
from reticent._names import NOT_SERVED
from reticent._sparkline import sparkline
from support.client.replying_server import DATASET, PLAN, Server, release


def test_a_data_set(server: Server) -> None:
    ds = server.dataset()
    assert (ds.name, ds.version, ds.n) == ("houses", 2, 20_000)
    assert ds.schema["grade"] == reticent.Column("grade", "integer", 1.0, 13.0, (), ("NA",))
    assert [c.name for c in ds.schema] == ["price", "grade", "zone", "new"]
    assert ds.schema["zone"].levels == ("a", "b", "<c>")
    assert ds.schema["zone"].role == ""
    weight = {"kind": "numeric", "lower": 0.5, "upper": 40, "role": "weight"}
    assert reticent.Column.from_json("w", weight).role == "weight"
    assert (ds.schema["zone"].title, ds.schema.labels) == ("zone", {})
    named = reticent.Column.from_json("w", weight | {"label": "Survey weight"})
    assert (named.label, named.title) == ("Survey weight", "Survey weight")
    assert "20,000 records; price, grade, zone, new" in repr(ds)
    with pytest.raises(KeyError, match="the columns are price"):
        ds.schema["absent"]


@pytest.mark.parametrize("name", sorted(NOT_SERVED))
def test_what_is_not_served_says_what_to_ask(server: Server, name: str) -> None:
    ds = server.dataset()
    with pytest.raises(AttributeError, match=f"there is no {name} of a data set; ask "):
        getattr(ds, name)
    served = set(re.findall(r"[a-z_]+", NOT_SERVED[name])) & set(dir(ds))
    assert served or "complete cases" in NOT_SERVED[name], "a method that there is"


def test_a_misspelt_method_is_named_as_python_does(server: Server) -> None:
    with pytest.raises(AttributeError, match="'Dataset' object has no attribute 'olss'") as raised:
        _ = server.dataset().olss  # type: ignore[attr-defined]
    assert raised.value.name == "olss"
    assert copy.copy(server.dataset()).name == "houses"


def test_all_data_sets(server: Server) -> None:
    server.always(200, {"datasets": [DATASET, DATASET | {"name": "other", "profile": None}]})
    assert [ds.name for ds in server.client().datasets()] == ["houses", "other"]


def test_the_profile(server: Server) -> None:
    profile = server.dataset().profile()
    assert profile.quantiles("price")["50%"] == pytest.approx(5e5)
    assert profile.quantiles("price").names[0] == "5%"
    named = replace(profile.schema["price"], label="Price in $ of 2015")
    schema = replace(profile.schema, columns=(named, *profile.schema.columns[1:]))
    assert "  price  Price in $ of 2015" in repr(replace(profile, schema=schema))
    assert "Labels" not in repr(profile)
    assert profile.counts("zone").to_dict() == {"a": 12_000.0, "b": 7_990.0, "<c>": 12.0}
    assert profile.counts("new").names == ("0", "1")
    assert profile.missing("grade") == 401.0
    assert profile.missing("price") is None
    for wrong in (profile.quantiles, profile.counts, profile.missing):
        with pytest.raises(KeyError):
            wrong("absent")
    with pytest.raises(KeyError):
        profile.quantiles("zone")


def test_the_profile_as_a_table(server: Server) -> None:
    profile = server.dataset().profile()
    lines = {line.split()[0]: line for line in repr(profile).splitlines() if line}
    assert "0 … 1e+07" in lines["price"]
    assert "2.0 %" in lines["grade"]
    assert "6.0000" in lines["grade"]
    assert "▁" in lines["price"] or "█" in lines["price"]
    bars = {line.split()[0]: line.split()[1:] for line in repr(profile).splitlines() if "█" in line}
    assert bars["a"] == ["12,000", "█" * 24]
    assert bars["b"] == ["7,990", "█" * 16]
    assert "&lt;c&gt;" in profile._repr_html_()
    assert "<c>" not in profile._repr_html_()


@pytest.mark.parametrize(
    ("quantiles", "shape"),
    [
        ((0, 1, 2, 3, 4), "████"),
        ((0, 2, 3, 4), "▅▅██"),
        ((0, 0, 0, 0, 4), "█▂▂▂"),
        ((0, 4, 4, 4), "▂▂▂█"),
        ((5, 5, 5), ""),
        ((), ""),
    ],
)
def test_the_shape_of_a_column(quantiles: tuple[float, ...], shape: str) -> None:
    """Mass between neighbouring quantiles is equal; ties are a point mass."""
    assert sparkline(quantiles, cells=4) == shape


def test_without_a_profile_there_is_the_codebook(server: Server) -> None:
    server.always(200, DATASET | {"profile": None})
    profile = server.client().dataset("houses").profile()
    assert "No profile has been released" in repr(profile)
    assert "1 … 13" in repr(profile)


def test_the_protected_unit_is_shown(server: Server) -> None:
    server.always(200, DATASET | {"unit": {"column": "person", "max_rows": 3}})
    assert "person (at most 3 rows)" in repr(server.client().dataset("houses").profile())


def test_a_plan_costs_nothing(server: Server) -> None:
    ds = server.dataset()
    server.always(200, PLAN)
    plan = ds.plan("linear_regression", "y ~ x1", where="x1 > 0", epsilon=1.0)
    sent = server.requests[-1]
    assert sent.url.path == "/base/v1/plans"
    assert "Idempotency-Key" not in sent.headers
    assert server.body()["query"] == {
        "kind": "linear_regression",
        "formula": "y ~ x1",
        "where": "x1 > 0",
    }
    assert plan.cost == reticent.Amount(1.0, 1e-6, 0.02436)
    assert plan.forecast["steps"] == 5
    lines = repr(plan).splitlines()
    assert "Cost: ε = 1, δ = 1e-06, ρ = 0.02436; the reply comes after 0.25 s" in lines
    assert lines[-4:] == [
        "Forecast steps: 5",
        "Forecast notes: No profile covers this model's columns. Another note.",
        "Forecast shares: gradients 0.7800, records in use 0.0000",
        "Forecast privacy standard error: 0.001250",
    ]
    assert "unconditional" in repr(plan)


def test_a_plan_takes_the_method_too(server: Server) -> None:
    ds = server.dataset()
    server.always(200, PLAN)
    ds.plan(ds.mean, "price", epsilon=1.0)
    assert server.body()["query"] == {"kind": "mean", "column": "price"}
    with pytest.raises(reticent.InvalidQuery, match="one of count, mean, "):
        ds.plan("variance", "price", epsilon=1.0)
    with pytest.raises(reticent.InvalidQuery, match="do not fit a mean"):
        ds.plan("mean", "price", "x > 1", "third", epsilon=1.0)


def test_the_budget(server: Server) -> None:
    account = {
        "dataset": "houses",
        "rule": "zcdp",
        "total": {"epsilon": 2.0, "delta": 1e-6, "rho": 0.08, "rho_delta": 1e-7},
        "spent": {"epsilon": 1.0, "rho": 0.024, "rho_delta": 0.0},
        "remaining": {"epsilon": 1.1, "rho": 0.056, "rho_delta": 1e-7},
    }
    basic = account | {
        "dataset": "flats",
        "rule": "basic",
        "spent": {"epsilon": 1.0, "delta": 0.0},
        "remaining": {"epsilon": 0.5, "delta": 0},
    }
    server.always(200, {"accounts": [account, basic]})
    budget = server.client().budget()
    assert budget["houses"].remaining == reticent.Amount(1.1, None, 0.056, 1e-7)
    assert budget["flats"].remaining.rho is None
    houses = " ".join(repr(budget).splitlines()[-2].split())
    assert houses.endswith("ρ = 0.024, δ = 0 ρ = 0.056, δ = 1e-07 1.1")
    assert [a.rule for a in budget] == ["zcdp", "basic"]
    assert len(budget) == 2
    assert " ".join(repr(budget).splitlines()[-1].split()) == (
        "flats basic ε = 2, δ = 1e-06 ε = 2, δ = 1e-06 ε = 1, δ = 0 ε = 0.5, δ = 0 0.5"
    )
    assert budget._repr_html_().count("<tr>") == 3
    with pytest.raises(KeyError, match="no account"):
        budget["absent"]


def test_stored_releases(server: Server) -> None:
    documents = [release("count"), release(), release(status="no_reply", result=None)]
    pages = [(documents[:2], 100), (documents[2:], None)]
    server.replies = [
        httpx.Response(200, json={"releases": page, "next_offset": after}) for page, after in pages
    ]
    kinds = [type(r) for r in server.client().releases()]
    assert [r.url.params["offset"] for r in server.requests] == ["0", "100"]
    assert kinds == [reticent.Estimate, reticent.RegressionResults, reticent.NoReply]
    server.answer = lambda _: httpx.Response(200, json=release("mean"))
    assert server.client().release("rel_1").query["column"] == "price"
    assert server.requests[-1].url.path == "/base/v1/releases/rel_1"


def test_published_releases(server: Server) -> None:
    page = {"releases": [release("mean"), release("count")], "next_offset": None}
    ds = server.dataset()
    server.always(200, page)
    assert [r.query["kind"] for r in ds.published()] == ["mean", "count"]
    assert server.requests[-1].url.path == "/base/v1/datasets/houses/published"


FEATURES = {"visits": "count()", "bmi": "last(bmi, by=day)"}
VIEW = DATASET | {
    "n": 400,
    "unit": {"column": "person", "max_rows": 1},
    "schema": {
        "columns": {
            "visits": {"kind": "integer", "lower": 0, "upper": 8, "levels": None, "missing": []},
            "bmi": {"kind": "numeric", "lower": 10, "upper": 60, "levels": None, "missing": [""]},
        }
    },
    "features": FEATURES,
    "tables": {},
    "profile": None,
}


def test_a_view_of_persons_is_a_data_set_whose_questions_carry_its_features(
    server: Server,
) -> None:
    ds = server.dataset()
    server.always(200, VIEW)
    patients = ds.persons({"visits": "count()"}, bmi="last(bmi, by=day)")
    asked = server.requests[-1]
    assert asked.url.path == "/base/v1/datasets/houses/persons"
    assert server.body() == {"persons": FEATURES}
    assert (patients.n, patients.schema["visits"].upper) == (400, 8)
    assert "400 persons; visits, bmi" in repr(patients)
    assert "last" not in repr(patients.profile())
    server.always(200, PLAN)
    patients.plan("mean", "visits", epsilon=0.1)
    assert server.body()["query"] == {
        "kind": "mean",
        "column": "visits",
        "persons": FEATURES,
    }
    server.always(201, release("mean"))
    patients.mean("visits", epsilon=0.1)
    assert server.body()["query"]["persons"] == FEATURES
    ds.mean("price", epsilon=0.1)
    assert "persons" not in server.body()["query"]


def test_features_are_texts(server: Server) -> None:
    with pytest.raises(reticent.InvalidQuery, match="persons must be"):
        server.dataset().persons(visits=3)  # type: ignore[arg-type]
