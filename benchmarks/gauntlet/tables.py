# SPDX-License-Identifier: Apache-2.0
"""The whole tables: statsmodels' own, and three that are used where they are at hand.

GAUNTLET_DATA: the folder of kc_house_data.csv (King County house sales), adult.data (UCI Adult) and
cps_asec_2024_wages.csv (Current Population Survey, March 2024); default ../shared/data beside the
project.
"""

import csv
import importlib.util
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.gauntlet.frame import Frame
from reticent_server.domain.schema import ColumnKind
from reticent_server.domain.steps import FloatArray

DATA = Path(os.environ.get("GAUNTLET_DATA", Path(__file__).parents[3] / "shared" / "data"))
SEED = 20261122  # of permuted and blanked cells, which are part of a table
MISSING_SHARE = 0.05  # of cells that are blanked: what a survey's item non-response often is


class AbsentTable(LookupError):
    """A table's file is not on this machine."""


def _statsmodels(name: str) -> Path:
    spec = importlib.util.find_spec("statsmodels")
    if spec is None or spec.origin is None:
        raise AbsentTable(f"{name}: statsmodels is not installed")
    return Path(spec.origin).parent / "datasets" / name / f"{name}.csv"


def _texts(path: Path, separator: str = ",") -> dict[str, np.ndarray]:
    """The cells of a file by column, stripped; lines of another length are left out."""
    if not path.exists():
        raise AbsentTable(f"{path.name} is not in {path.parent}")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter=separator, skipinitialspace=True))
    names = [cell.strip().strip("'\"") for cell in rows[0]]
    whole = [row for row in rows[1:] if len(row) == len(names)]
    columns = zip(*whole, strict=True)
    return {k: np.char.strip(np.array(x)) for k, x in zip(names, columns, strict=True)}


def _numbers(texts: dict[str, np.ndarray]) -> dict[str, FloatArray]:
    """The columns that are numbers."""
    found = {}
    for name, cells in texts.items():
        try:
            found[name] = cells.astype(float)
        except ValueError:
            continue
    return found


def _blanked(x: FloatArray, rng: np.random.Generator) -> FloatArray:
    return np.where(rng.random(len(x)) < MISSING_SHARE, np.nan, x)


def houses() -> Frame:
    """House sales, 21,613."""
    texts, rng, frame = _texts(DATA / "kc_house_data.csv"), np.random.default_rng(SEED), Frame()
    g = _numbers(texts)
    price, living, grade = g["price"], g["sqft_living"], g["grade"]
    frame.numerics(
        g,
        price=(1e4, 1e7),
        sqft_living=(100, 20_000),
        sqft_lot=(100, 2e6),
        sqft_above=(100, 20_000),
        sqft_basement=(0, 10_000),
        lat=(47, 48),
        long=(-123, -121),
        sqft_living15=(100, 10_000),
        sqft_lot15=(100, 1e6),
        bathrooms=(0, 10),
        floors=(1, 4),
    )
    frame.integers(
        g,
        bedrooms=(0, 40),
        condition=(1, 5),
        grade=(1, 13),
        view=(0, 4),
        yr_built=(1900, 2020),
        yr_renovated=(0, 2020),
    )
    frame.booleans(
        waterfront=g["waterfront"], basement=g["sqft_basement"] > 0, dear=price > 1_000_000
    )
    frame.put("price_milli", price * 1e6, 0, 1e13)
    frame.put("sqft_wide", living, -1e9, 1e9)
    frame.put("sqft_again", living + rng.normal(0, 9, frame.n), 0, 20_000)
    frame.put("grade5", np.clip(grade, 6, 10) - 6, 0, 4, ColumnKind.INTEGER)
    frame.put("floors_i", np.minimum(np.floor(g["floors"]), 3), 1, 3, ColumnKind.INTEGER)
    year = np.char.startswith(texts["date"], "2015") + 2014
    frame.put("year", year, 2014, 2015, ColumnKind.INTEGER)
    frame.factor("conditions", texts["condition"]).factor("views", texts["view"])
    frame.factor("beds", np.clip(g["bedrooms"], 1, 6).astype(int))
    rarest_first = ("1", "2", "5", "4", "3")
    frame.factor("conditions_rare", texts["condition"], rarest_first)
    frame.factor("zone", [code[:4] for code in texts["zipcode"]])
    cellar = np.where(g["sqft_basement"] > 0, g["sqft_basement"], np.nan)
    frame.put("basement_m", cellar, 1, 10_000, missing=("0",))
    frame.put("sqft_living_m", _blanked(living, rng), 100, 20_000, missing=("NA",))
    frame.put("grade_m", _blanked(grade, rng), 1, 13, ColumnKind.INTEGER, missing=("NA",))
    frame.put("bathrooms_m", _blanked(g["bathrooms"], rng), 0, 10, missing=("NA",))
    return frame


def adult() -> Frame:
    """Census records, 32,561."""
    texts, rng, frame = _texts(DATA / "adult.data"), np.random.default_rng(SEED), Frame()
    g = _numbers(texts)
    names = {"edu": "education-num", "hours": "hours-per-week", "age": "age"}
    names |= {"gain": "capital-gain", "loss": "capital-loss"}
    values = {name: g[column] for name, column in names.items()}
    frame.integers(
        values, age=(17, 90), edu=(1, 16), hours=(1, 99), gain=(0, 100_000), loss=(0, 5_000)
    )
    frame.booleans(high=texts["Salary"] == ">50K", male=texts["sex"] == "Male")
    frame.put("age_m", _blanked(values["age"], rng), 17, 90, ColumnKind.INTEGER, ("NA",))
    frame.put("hours_m", _blanked(values["hours"], rng), 1, 99, ColumnKind.INTEGER, ("NA",))
    frame.factor("marital", [_marital(cell) for cell in texts["marital-status"]])
    frame.factor("race", [_kept(cell, ("White", "Black")) for cell in texts["race"]])
    works = ("Private", "Local-gov", "Self-emp-not-inc")
    frame.factor("work", [_kept(cell, works) for cell in texts["workclass"]])
    frame.put("null", rng.permutation(values["age"]), 17, 90)
    frame.factor("null3", rng.choice(["a", "b", "c"], frame.n, p=[0.6, 0.3, 0.1]))
    return frame


def _marital(cell: str) -> str:
    if "civ" in cell:
        return "Married"
    return "Never" if cell.startswith("Never") else "Was"


def _kept(cell: str, kept: tuple[str, ...]) -> str:
    return cell if cell in kept else "Other"


def wages() -> Frame:
    """Wages, schooling and experience, 54,875."""
    g, rng = _numbers(_texts(DATA / "cps_asec_2024_wages.csv")), np.random.default_rng(SEED)
    frame = Frame().numerics(
        g,
        log_wage=(0, 16),
        educ_years=(0, 22),
        experience=(0, 80),
        experience_sq=(0, 6_400),
        WSAL_VAL=(0, 3e6),
        A_AGE=(15, 90),
    )
    frame.booleans(female=g["female"])
    return frame.put("null", rng.permutation(g["educ_years"]), 0, 22)


def randhie() -> Frame:
    """The RAND Health Insurance Experiment, 20,190 person-years."""
    g, rng = _numbers(_texts(_statsmodels("randhie"))), np.random.default_rng(SEED)
    frame = Frame().numerics(
        g, mdvis=(0, 100), lncoins=(0, 5), lpi=(0, 8), fmde=(0, 10), disea=(0, 60)
    )
    frame.booleans(**{k: g[k] for k in ("idp", "hlthg", "hlthf", "hlthp")})
    frame.put("physlm", np.clip(g["physlm"], 0, 1), 0, 1)
    rated = [g["hlthp"] > 0, g["hlthf"] > 0, g["hlthg"] > 0]
    health = np.select(rated, ["poor", "fair", "good"], "excellent")
    frame.factor("health", health, ("poor", "fair", "good", "excellent"))  # poor: 1.5 %
    return frame.put("null", rng.permutation(g["disea"]), 0, 60)


def fair() -> Frame:
    """A magazine's survey of married women, 6,366."""
    g = _numbers(_texts(_statsmodels("fair")))
    frame = Frame().numerics(
        g,
        rate_marriage=(1, 5),
        age=(15, 50),
        yrs_married=(0, 30),
        children=(0, 6),
        religious=(1, 4),
        educ=(9, 20),
        occupation=(1, 6),
        affairs=(0, 60),
    )
    return frame.booleans(had=g["affairs"] > 0)


def anes() -> Frame:
    """The American National Election Study of 1996, 944."""
    g = _numbers(_texts(_statsmodels("anes96"), "\t"))
    frame = Frame().numerics(
        g, selfLR=(1, 7), PID=(0, 6), age=(18, 95), educ=(1, 7), income=(1, 24)
    )
    return frame.booleans(vote=g["vote"])


def schools() -> Frame:
    """Californian school districts (star98), 303."""
    g = _numbers(_texts(_statsmodels("star98")))
    shares = ("LOWINC", "PERASIAN", "PERBLACK", "PERHISP", "PCTAF", "PCTCHRT", "PCTYRRND")
    frame = Frame().put("share", g["PR50M"] / g["MATHTOT"], 0, 1)
    frame.numerics(g, **dict.fromkeys(shares, (0.0, 100.0)))
    return frame.numerics(g, PTRATIO=(5, 40))


def cards() -> Frame:
    """Credit cards (ccard), 72."""
    g = _numbers(_texts(_statsmodels("ccard")))
    frame = Frame().numerics(g, AVGEXP=(0, 3_000), AGE=(18, 80), INCOME=(0, 20), INCOMESQ=(0, 400))
    return frame.booleans(OWNRENT=g["OWNRENT"])


def engel() -> Frame:
    """Engel's households, 235."""
    g = _numbers(_texts(_statsmodels("engel")))
    return Frame().numerics(g, income=(100, 10_000), foodexp=(100, 5_000))


TABLES: dict[str, Callable[[], Frame]] = {
    "houses": houses,
    "adult": adult,
    "wages": wages,
    "randhie": randhie,
    "fair": fair,
    "anes": anes,
    "schools": schools,
    "cards": cards,
    "engel": engel,
}


@cache
def table(name: str) -> Frame:
    """A whole table; AbsentTable where its file is not on this machine."""
    return TABLES[name]()
