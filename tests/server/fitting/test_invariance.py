# SPDX-License-Identifier: Apache-2.0
"""The same model written otherwise: other contrasts, centres, units and bases give the same fitted
values.

Without noise (ε so large that none is left); what is left are the rounds of whitening and the
steps, which start from public rows that are drawn for each writing anew.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.design import Apply, ColumnValue, Indicator, Term
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.kinds.glm.plan import plan_glm
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.shared.linear.plan import plan_linear_regression
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.numerics.evaluate import evaluate_term
from support.fits.regressions import (
    HUGE_RHO,
    boolean,
    drive,
    facts_of,
    numeric,
    plain_design,
    profile_of,
    whole,
)
from support.seeds import seeded

N = 8000
SHARES = (0.03, 0.12, 0.25, 0.60)
G = Column("g", ColumnKind.CATEGORICAL, 0.0, 3.0, tuple("abcd"))
FAMILIES = ("linear", "binomial", "poisson", "gamma")


@dataclass
class Writing:
    """One way to write a model: its design matrix (n, q) as written, and the reply."""

    matrix: np.ndarray
    result: dict[str, Any]

    @property
    def fitted(self) -> Any:
        """(n,) predictors."""
        return self.matrix @ self.result["coefficients"]

    @property
    def errors(self) -> Any:
        """(n,) their standard errors."""
        C = np.array(self.result["covariance"])
        return np.sqrt(np.einsum("ij,jk,ik->i", self.matrix, C, self.matrix))


def base_table() -> dict[Any, Any]:
    rng = seeded(3)
    x = rng.normal(size=N)
    g = rng.choice(4, p=SHARES, size=N).astype(float)
    z = 0.6 * x + 0.8 * rng.normal(size=N)
    return {"x": x, "z": z, "g": g}


def responses(table: Any, family: Any, eta: Any) -> Any:
    rng = seeded(4)
    match family:
        case "linear":
            return eta + 0.7 * rng.standard_t(4, N)
        case "binomial":
            return (rng.random(N) < 1 / (1 + np.exp(-eta))).astype(float)
        case "poisson":
            return rng.poisson(np.exp(eta)).astype(float)
        case _:
            return rng.gamma(2.0, np.exp(eta) / 2)


def written(table: Any, terms: Any, columns: Any, family: Any, rho: Any = HUGE_RHO) -> Writing:
    """The model of these terms, fitted."""
    y = {"linear": numeric("y", -1e3, 1e3), "binomial": boolean("y")}.get(family)
    y = y or numeric("y", 0.0, 1e3)
    plain = [c for c in columns if c is not G]
    levels = {"g": 4} if G in columns else None
    facts = facts_of(N, [*columns, y], profile_of(table, [*plain, y], levels))
    names = (*(c.name for c in columns), "y")
    design = replace(plain_design([], y), terms=tuple(terms), columns=names)
    if family == "linear":
        plan = plan_linear_regression(facts, design, LinearRegression("y ~ x"), rho)
    else:
        plan = plan_glm(facts, design, Glm("y ~ x", family), rho)
    block = whole(table)
    matrix = np.column_stack([np.ones(N), *(evaluate_term(t, block) for t in terms)])
    return Writing(matrix, drive(plan.run(), block).result)


def levels_but(reference: Any) -> list[Any]:
    return [
        Term(f"g{k}", (Indicator("g", float(k)),), 0, 1, dummy=True)
        for k in range(4)
        if k != reference
    ]


def value(name: Any, low: float = -1e3, high: float = 1e3) -> Term:
    return Term(name, (ColumnValue(name),), low, high)


def same(first: Any, second: Any, tolerance: float = 0.15) -> None:
    """Fitted values within a share of their standard errors, at every record; standard errors
    within 10 %.
    """
    gap = (first.fitted - second.fitted) / first.errors
    assert np.max(np.abs(gap)) < tolerance
    np.testing.assert_allclose(second.errors / first.errors, 1, atol=0.1)
    assert all(first.result["estimable"])
    assert all(second.result["estimable"])


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("family", FAMILIES)
def test_any_level_may_be_the_reference(family: str) -> None:
    table = base_table()
    eta = 0.4 + 0.4 * table["x"] + np.array([0.9, -0.4, 0.3, 0.0])[table["g"].astype(int)]
    table["y"] = responses(table, family, eta)
    columns = [numeric("x", -1e3, 1e3), G]
    common, rare = (written(table, [value("x"), *levels_but(k)], columns, family) for k in (3, 0))
    same(common, rare)


@pytest.mark.sample(4)
@pytest.mark.parametrize("family", FAMILIES)
def test_units_and_centres_do_not_matter(family: str) -> None:
    table = base_table()
    eta = 0.4 + 0.4 * table["x"] - 0.3 * table["z"]
    table["y"] = responses(table, family, eta)
    moved = table | {"x": 40 + 7 * table["x"], "z": -0.02 * table["z"]}
    columns, terms = [numeric("x", -1e3, 1e3), numeric("z", -1e3, 1e3)], [value("x"), value("z")]
    first, second = (written(t, terms, columns, family) for t in (table, moved))
    same(first, second)
    np.testing.assert_allclose(
        np.array(first.result["coefficients"])[1:],
        np.array(second.result["coefficients"])[1:] * [7, -0.02],
        atol=0.002,
    )


@pytest.mark.sample(4)
@pytest.mark.parametrize("family", FAMILIES)
def test_an_interaction_may_be_of_uncentred_columns(family: str) -> None:
    """x·z about 0 and about (30, 50), where x, z and xz are nearly collinear."""
    table = base_table()
    eta = 0.3 + 0.3 * table["x"] - 0.2 * table["z"] + 0.2 * table["x"] * table["z"]
    table["y"] = responses(table, family, np.clip(eta, -6, 4))
    moved = table | {"x": 30 + table["x"], "z": 50 + table["z"]}
    both = Term("x:z", (ColumnValue("x"), ColumnValue("z")), -1e6, 1e6)
    columns, terms = [numeric("x", -1e3, 1e3), numeric("z", -1e3, 1e3)], [value("x"), value("z")]
    first, second = (written(t, [*terms, both], columns, family) for t in (table, moved))
    same(first, second, 0.3)


def test_powers_may_be_raw() -> None:
    table = base_table()
    table["y"] = responses(table, "linear", 1 + table["x"] - 0.2 * table["x"] ** 2)
    moved = table | {"x": 20 + 2 * table["x"]}
    square = Term("x^2", (ColumnValue("x"), ColumnValue("x")), 0, 1e6)
    first, second = (
        written(t, [value("x"), square], [numeric("x", -1e3, 1e3)], "linear")
        for t in (table, moved)
    )
    same(first, second, 0.3)


def test_the_order_of_terms_does_not_matter() -> None:
    table = base_table()
    table["y"] = responses(table, "linear", table["x"] - table["z"])
    columns = [numeric("x", -1e3, 1e3), numeric("z", -1e3, 1e3), G]
    terms = [value("x"), value("z"), *levels_but(1)]
    first, second = (written(table, t, columns, "linear") for t in (terms, terms[::-1]))
    same(first, second, 0.05)


def test_logs_in_other_units_are_another_intercept() -> None:
    table = base_table()
    table["y"] = responses(table, "linear", 1 + table["x"])
    positive = table | {"x": np.exp(table["x"])}
    other = table | {"x": 40 * np.exp(table["x"])}
    log = Term("log(x)", (Apply("log", ColumnValue("x")),), -12, 12)
    first, second = (
        written(t, [log], [numeric("x", 1e-5, 1e5)], "linear") for t in (positive, other)
    )
    same(first, second, 0.05)
