# SPDX-License-Identifier: Apache-2.0
"""The tables and models of a folder: `models.json` and one CSV file a table."""

import csv
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gauntlet.frame import Frame
from reticent_server.domain.schema import ColumnKind
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.shared.linear.query import LinearRegression

MODELS = "models.json"
TABLES = Path(os.environ.get("REAL_TABLES", Path(__file__).parents[3] / "shared" / "tables"))
MOST = 20_000  # records of a sample
LEAST_DURATION = 0.01  # years: a policy's exposure where its file says 0
_LEAST_KIND = {"numeric": ColumnKind.NUMERIC, "integer": ColumnKind.INTEGER}


@dataclass(frozen=True, slots=True)
class RealModel:
    """A model of a table. query: as asked, without a target or a loss of its own."""

    name: str
    table: str
    query: LinearRegression | Glm

    @property
    def linear(self) -> bool:
        return isinstance(self.query, LinearRegression)


@dataclass(frozen=True, slots=True)
class Folder:
    """The models of a folder and what their tables' columns are declared to be."""

    path: Path
    columns: dict[str, dict[str, dict[str, Any]]]
    models: tuple[RealModel, ...]

    def frame(self, name: str) -> Frame:
        """A whole table; columns that its file lacks are left out."""
        texts = _texts(self.path / f"{name}.csv")
        frame = Frame()
        for column, declared in self.columns[name].items():
            if column in texts:
                _put(frame, column, texts[column], declared)
        return _derived(frame)


def read_folder(path: Path = TABLES) -> Folder:
    """Raises FileNotFoundError where there is no models.json."""
    stored = json.loads((path / MODELS).read_text(encoding="utf-8"))
    return Folder(path, stored["tables"], tuple(map(_model, stored["models"])))


def _model(stored: dict[str, Any]) -> RealModel:
    asked = {k: v for k, v in stored.items() if k not in {"name", "table", "kind"}}
    kind = LinearRegression if stored["kind"] == "linear_regression" else Glm
    return RealModel(stored["name"], stored["table"], kind(**asked))


def _texts(path: Path) -> dict[str, np.ndarray]:
    with path.open(newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)
    return {k: np.array(x) for k, x in zip(names, zip(*rows, strict=True), strict=True)}


def _put(frame: Frame, name: str, texts: np.ndarray, declared: dict[str, Any]) -> None:
    kind = declared["kind"]
    if kind == "categorical":
        frame.factor(name, texts, tuple(sorted(set(texts.tolist()))))
    elif kind == "boolean":
        frame.booleans(**{name: texts == declared["true"]})
    else:
        values = np.array([float(cell) if cell else np.nan for cell in texts.tolist()])
        if np.isfinite(values).all():  # models use complete columns only
            frame.put(name, values, declared["lower"], declared["upper"], _LEAST_KIND[kind])


def _derived(frame: Frame) -> Frame:
    """Columns that models need and files lack."""
    arrays = frame.arrays
    if "antskad" in arrays:
        frame.booleans(antskad1=arrays["antskad"] > 0)
        frame.put("dur", np.maximum(arrays["duration"], LEAST_DURATION), LEAST_DURATION, 60)
    if "ab" in arrays:
        frame.put("ab1", np.maximum(arrays["ab"], 1), 1, 800)
    return frame
