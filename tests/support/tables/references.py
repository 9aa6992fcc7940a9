# SPDX-License-Identifier: Apache-2.0
"""R's stored fits and the data they were made on; large data only where it is beside the
repository.
"""

import csv
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from reticent_server.domain.steps import FloatArray

_FIXTURES = Path(__file__).parents[2] / "fixtures"
_SHARED = Path(__file__).parents[4] / "shared" / "data"

REFERENCE = json.loads((_FIXTURES / "r_robust_fits.json").read_text())


def epilepsy() -> tuple[FloatArray, FloatArray]:
    """(X (59, 5), y (59,)): Ysum ~ Age10 + Base4 * trt."""
    with (_FIXTURES / "epilepsy.csv").open() as file:
        rows = list(csv.DictReader(file))
    age, base, y = (np.array([float(r[k]) for r in rows]) for k in ("Age10", "Base4", "Ysum"))
    trt = np.array([float(r["Trt"] != "placebo") for r in rows])
    return np.column_stack([np.ones(59), age, base, trt, base * trt]), y


def shared_csv(name: str) -> dict[str, list[str]] | None:
    """The columns of a shared file by name (texts), or None where it is not there."""
    path = _SHARED / name
    if not path.exists():
        return None
    with path.open() as file:
        header, *rows = ([cell.strip() for cell in row] for row in csv.reader(file) if row)
    return {
        key.replace(".", "_").replace("-", "_"): list(column)
        for key, column in zip(header, zip(*rows, strict=True), strict=True)
    }


def numbers(column: Iterable[str]) -> FloatArray:
    return np.array([float(v) for v in column])


def projection_depths() -> tuple[FloatArray, FloatArray, FloatArray]:
    """(points (2, 8), data (2, 499), depths (8,)): projection depth with the deviation scale."""
    stored = json.loads((_FIXTURES / "projection_depth.json").read_text())
    with (_FIXTURES / "depth2d.csv").open() as file:
        _, *rows = csv.reader(file)
    data = np.array(rows, dtype=float).T
    return np.array(stored["points"]).T, data, np.array(stored["dense_grid"])
