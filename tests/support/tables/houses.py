# SPDX-License-Identifier: Apache-2.0
"""An invented table of house sales, and the schema that a curator would write for it."""

from pathlib import Path

import numpy as np

from support.seeds import seeded

SCHEMA = """\
description: House sales in an invented county
unit: row
columns:
  price:       {kind: numeric, lower: 10000, upper: 10000000}
  sqft_living: {kind: numeric, lower: 200, upper: 15000}
  bedrooms:    {kind: integer, lower: 0, upper: 12}
  grade:       {kind: integer, lower: 1, upper: 13}
  condition:   {kind: integer, lower: 1, upper: 5}
  yr_built:    {kind: integer, lower: 1850, upper: 2020}
  waterfront:  {kind: categorical, levels: ["0", "1"]}
  days:        {kind: integer, lower: 0, upper: 365}
  sold:        {kind: boolean}
  quarter:     {kind: integer, lower: 1, upper: 8}
  station:     {kind: integer, lower: 3, upper: 6, missing: ["0"]}
  ended:       {kind: categorical, levels: [listed, sold, withdrawn]}
"""
COLUMNS = (
    "price", "sqft_living", "bedrooms", "grade", "condition", "yr_built", "waterfront", "days",
    "sold",
    "quarter", "station", "ended",
)  # fmt: skip


def write_houses(csv: Path, schema: Path | None = None, rows: int = 6_000) -> None:
    """Writes the table, and the schema file where one is named."""
    rng = seeded(11)
    grade = np.clip(np.round(rng.normal(7.5, 1.2, rows)), 1, 13)
    sqft = np.round(np.exp(rng.normal(7.1, 0.3, rows) + 0.08 * grade)).clip(250, 14_000)
    bedrooms = np.clip(np.round(sqft / 700 + rng.normal(0, 0.8, rows)), 0, 12)
    condition = rng.integers(1, 6, rows)
    built = rng.integers(1900, 2016, rows)
    waterfront = (rng.random(rows) < 0.2).astype(int)
    noise = rng.standard_t(4, rows) * 60_000
    later = seeded(12)
    quarter = later.integers(1, 9, rows)
    # in which a railway station is opened near by; 0: none is
    station = np.where(later.random(rows) < 0.4, 0, later.integers(3, 7, rows))
    opened = (station > 0) & (quarter >= station)
    price = 30_000 + 160 * sqft + 35_000 * grade + 150_000 * waterfront + 60_000 * opened + noise
    until_sold = rng.exponential(90, rows) * np.where(waterfront == 1, 0.7, 1.0)
    followed = rng.uniform(60, 365, rows)
    days, sold = np.ceil(np.minimum(until_sold, followed)), until_sold <= followed
    unsold = np.where(later.random(rows) < 0.4, "withdrawn", "listed")
    ended = np.where(sold, "sold", unsold)
    cells = zip(
        np.round(price.clip(20_000, 9e6)), sqft, bedrooms, grade, condition, built, waterfront,
        days, sold, quarter, station, ended,
        strict=True,
    )  # fmt: skip
    lines = [",".join([*(str(int(cell)) for cell in row[:-1]), row[-1]]) for row in cells]
    csv.write_text("\n".join([",".join(COLUMNS), *lines]) + "\n", encoding="utf-8")
    if schema is not None:
        schema.write_text(SCHEMA, encoding="utf-8")
