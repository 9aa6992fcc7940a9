# SPDX-License-Identifier: Apache-2.0
"""python -m benchmarks.real_tables.log_links FOLDER: writes tables and models with a link log.

Counts, rates and amounts that nothing was tuned on: tables of the R packages AER, carData, ggplot2
and survival (read through Rscript), of statsmodels, and simulated costs and rates. Then
`python -m benchmarks.real_tables --tables FOLDER --asked likelihood --fast`.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from statsmodels import datasets

_PACKAGES = {
    "CPSSW8": "AER",
    "CreditCard": "AER",
    "DoctorVisits": "AER",
    "GSS7402": "AER",
    "PSID7682": "AER",
    "Arrests": "carData",
    "SLID": "carData",
    "diamonds": "ggplot2",
    "rotterdam": "survival",
}
_READ = """
suppressPackageStartupMessages(library({1}))
if (!exists("{0}")) data(list="{0}")
write.csv(as.data.frame({0}), stdout(), row.names=FALSE)
"""
_RECORDS = 20_000
_SEED = 7


@dataclass(frozen=True, slots=True)
class LogModel:
    """A model of a table. columns: of each either (lower, upper), the text that is true, or
    None of a factor.
    """

    name: str
    table: str
    formula: str
    family: str
    columns: dict[str, tuple[float, float] | str | None]
    exposure: str | None = None

    @property
    def stored(self) -> dict[str, Any]:
        """As models.json has it."""
        rate = {} if self.exposure is None else {"exposure": self.exposure}
        return {
            "name": self.name,
            "table": self.table,
            "kind": "glm",
            "formula": self.formula,
            "family": self.family,
            **rate,
        }


MODELS = (
    LogModel(
        "Poisson doctor visits",
        "DoctorVisits",
        "visits ~ gender + age + income + illness + health",
        "poisson",
        {
            "visits": (0, 30),
            "gender": "female",
            "age": (0, 1),
            "income": (0, 2),
            "illness": (0, 10),
            "health": (0, 12),
        },
    ),
    LogModel(
        "Poisson visits, RAND",
        "randhie",
        "mdvis ~ lncoins + physlm + disea + hlthp",
        "poisson",
        {
            "mdvis": (0, 100),
            "lncoins": (0, 5),
            "physlm": (0, 1),
            "disea": (0, 60),
            "hlthp": "1",
        },
    ),
    LogModel(
        "Poisson children, GSS",
        "GSS7402",
        "kids ~ age + education + siblings + immigrant",
        "poisson",
        {
            "kids": (0, 12),
            "age": (18, 100),
            "education": (0, 20),
            "siblings": (0, 40),
            "immigrant": "yes",
        },
    ),
    LogModel(
        "Poisson accounts",
        "CreditCard",
        "active ~ age + income + owner",
        "poisson",
        {"active": (0, 60), "age": (0, 100), "income": (0, 20), "owner": "yes"},
    ),
    LogModel(
        "Poisson checks",
        "Arrests",
        "checks ~ colour + age + sex + employed + citizen",
        "poisson",
        {
            "checks": (0, 10),
            "colour": "Black",
            "age": (10, 80),
            "sex": "Male",
            "employed": "Yes",
            "citizen": "Yes",
        },
    ),
    LogModel(
        "Poisson nodes",
        "rotterdam",
        "nodes ~ age + size + grade",
        "poisson",
        {"nodes": (0, 50), "age": (20, 100), "size": None, "grade": (1, 4)},
    ),
    LogModel(
        "Gamma earnings, CPS 1992-2004",
        "CPSSW8",
        "earnings ~ gender + age + education",
        "gamma",
        {"earnings": (1, 100), "gender": "female", "age": (18, 70), "education": (0, 20)},
    ),
    LogModel(
        "Gamma wages, SLID",
        "SLID",
        "wages ~ education + age + sex",
        "gamma",
        {"wages": (1, 100), "education": (0, 25), "age": (16, 90), "sex": "Male"},
    ),
    LogModel(
        "Gamma wages, PSID",
        "PSID7682",
        "wage ~ experience + education + gender + union",
        "gamma",
        {
            "wage": (50, 10_000),
            "experience": (0, 60),
            "education": (0, 20),
            "gender": "female",
            "union": "yes",
        },
    ),
    LogModel(
        "Gamma prices, diamonds",
        "diamonds",
        "price ~ log(carat) + cut",
        "gamma",
        {"price": (100, 50_000), "carat": (0.1, 10), "cut": None},
    ),
    LogModel(
        "Gamma costs, 20,000",
        "costs",
        "cost ~ age + female + chronic",
        "gamma",
        {"cost": (0.1, 1e6), "age": (18, 95), "female": "1", "chronic": (0, 10)},
    ),
    LogModel(
        "Gamma costs, 5,000",
        "fewer_costs",
        "cost ~ age + female + chronic",
        "gamma",
        {"cost": (0.1, 1e6), "age": (18, 95), "female": "1", "chronic": (0, 10)},
    ),
    LogModel(
        "Poisson calls, exposure",
        "calls",
        "calls ~ age + female + plan",
        "poisson",
        {
            "calls": (0, 1000),
            "age": (18, 95),
            "female": "1",
            "plan": None,
            "years": (0.05, 3),
        },
        exposure="years",
    ),
    LogModel(
        "Poisson large counts",
        "calls",
        "calls ~ age + female + plan",
        "poisson",
        {
            "calls": (0, 1000),
            "age": (18, 95),
            "female": "1",
            "plan": None,
            "years": (0.05, 3),
        },
    ),
)


def simulated(n: int, *, counts: bool) -> pd.DataFrame:
    """Costs that are Gamma with a squared coefficient of variation of 1.5, or calls whose rates
    vary by .1 of their square.
    """
    rng = np.random.default_rng(_SEED)
    age, female = np.clip(rng.normal(48, 16, n), 18, 95).round(), rng.integers(0, 2, n)
    if not counts:
        chronic = rng.poisson(0.02 * age)
        mean = np.exp(5.5 + 0.015 * age + 0.15 * female + 0.3 * np.minimum(chronic, 10))
        cost = np.clip(rng.gamma(1 / 1.5, 1.5 * mean), 0.1, 1e6)
        columns = {"cost": cost, "age": age, "female": female}
        return pd.DataFrame({**columns, "chronic": np.minimum(chronic, 10)})
    plan, years = rng.choice(list("abc"), n, p=(0.5, 0.3, 0.2)), rng.uniform(0.05, 3, n)
    rate = np.exp(2.2 - 0.01 * age + 0.2 * female + 0.4 * (plan == "b")) * rng.gamma(10, 0.1, n)
    calls = rng.poisson(rate * years)
    return pd.DataFrame(
        {"calls": calls, "age": age, "female": female, "plan": plan, "years": years}
    )


def _table(name: str) -> pd.DataFrame:
    made = {"costs": (_RECORDS, False), "fewer_costs": (_RECORDS // 4, False)}
    if name in made or name == "calls":
        n, counts = made.get(name, (_RECORDS, True))
        return simulated(n, counts=counts)
    if name == "randhie":
        return datasets.randhie.load_pandas().data
    read = _READ.format(name, _PACKAGES[name])
    with subprocess.Popen(["Rscript", "-e", read], stdout=subprocess.PIPE) as process:
        return pd.read_csv(process.stdout)


def _declared(values: pd.Series, told: tuple[float, float] | str | None) -> dict[str, Any]:
    if told is None:
        return {"kind": "categorical"}
    if isinstance(told, str):
        return {"kind": "boolean", "true": told}
    whole = bool((values == values.round()).all())
    return {"kind": "integer" if whole else "numeric", "lower": told[0], "upper": told[1]}


def _as_text(values: pd.Series, told: tuple[float, float] | str | None) -> pd.Series:
    if told is None or not isinstance(told, str):
        return values
    return values.map(lambda cell: f"{cell:g}" if isinstance(cell, float) else str(cell))


def written(folder: Path) -> Iterator[str]:
    """Writes one CSV file a table, and models.json; yields each table's name."""
    columns: dict[str, dict[str, Any]] = {}
    for model in MODELS:
        if model.table not in columns:
            read = _table(model.table)
            table = read[list(model.columns)].dropna()
            texts = {k: _as_text(table[k], told) for k, told in model.columns.items()}
            pd.DataFrame(texts).to_csv(folder / f"{model.table}.csv", index=False)
            columns[model.table] = {k: _declared(table[k], x) for k, x in model.columns.items()}
            yield f"{model.table} {len(table)}"
    stored = {"tables": columns, "models": [m.stored for m in MODELS]}
    (folder / "models.json").write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python -m benchmarks.real_tables.log_links FOLDER")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for line in written(folder):
        print(line, flush=True)


if __name__ == "__main__":
    main()
