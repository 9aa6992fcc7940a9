# SPDX-License-Identifier: Apache-2.0
"""A data set's twin: a synthetic table that answers as the data set would, in this process and
about nobody.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reticent import _optional
from reticent._dataset import Dataset
from reticent._errors import InvalidQuery, NotFound, from_reply
from reticent._schema import Column
from reticent._synthetic import FloatArray, Marginal, correlations, draw

if TYPE_CHECKING:
    from reticent.kinds.study import Study

LABEL = "synthetic, not for inference"
MOST_ROWS = 1_000_000
"""More would take longer than a rehearsal may."""


class LocalWire:
    """What a data set asks in place of the network: a server for the synthetic table, made when it
    is first asked.
    """

    def __init__(
        self,
        document: Mapping[str, Any],
        columns: Mapping[str, FloatArray],
        missing: Mapping[str, NDArray[np.bool_]],
    ) -> None:
        self._table = (document, columns, missing)
        self._server: Any = None

    def post(self, path: str, body: Mapping[str, Any], _key: str | None = None) -> Any:
        """The reply's document. Raises MissingDependency, and what a server refuses."""
        if self._server is None:
            self._server = _optional.server_twin().TwinServer(*self._table)
        status, content = self._server.reply(path, body)
        if status >= 400:
            raise from_reply(status, content)
        return json.loads(content)

    def release(self, body: Mapping[str, Any], key: str) -> Any:
        """A release, which is stored nowhere."""
        return self.post("/v1/releases", body, key)

    def close(self) -> None:
        """There is no connection."""

    submit = release
    """A twin's answer is there at once."""


@dataclass(frozen=True, slots=True, repr=False)
class Twin(Dataset):
    """A synthetic table about nobody, with every method of a data set. Nothing is charged, and
    nothing is for inference.

    columns: (rows,) stored values by name: numbers, codes of levels, 0 and 1. missing: masks of
    columns that may be missing.

    >>> rehearsal = ds.twin(seed=1)
    >>> rehearsal.mean("price", epsilon=0.5)
    """

    columns: Mapping[str, FloatArray] = field(default_factory=dict, compare=False)
    missing: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict, compare=False)

    def to_frame(self) -> Any:
        """The table as a pandas.DataFrame: levels as texts, None or NaN for missing cells. `attrs`
        of it, and of each column, say that it is synthetic and not for inference.

        >>> ds.twin(n=100).to_frame()["price"].attrs
        """
        frame = _optional.pandas().DataFrame({c.name: self._cells(c) for c in self.schema})
        frame.attrs = {"label": LABEL, "twin_of": str(self._document["twin_of"])}
        return frame

    def _cells(self, column: Column) -> Any:
        values = self.columns[column.name]
        if column.levels:
            texts = np.array(column.levels, dtype=object)[values.astype(np.intp)]
        elif column.kind == "boolean":
            texts = values.astype(bool).astype(object)
        else:
            if column.kind == "date":
                values = values.astype(np.int64).astype("datetime64[D]").astype("datetime64[s]")
            whole = column.kind == "integer" and column.name not in self.missing
            texts = values.astype(np.int64) if whole else values.copy()
        if column.name in self.missing:
            texts[self.missing[column.name]] = _absent(texts.dtype)
        return texts

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self.schema)
        return f"<Twin of {self._document['twin_of']}, {LABEL}: {self.n:,} records; {names}>"


def _absent(kind: np.dtype[Any]) -> Any:
    """A missing cell of an array of that type."""
    if kind.kind == "M":
        return np.datetime64("NaT")
    return None if kind.kind == "O" else np.nan


def make_twin(dataset: Dataset, n: int | None, study: "Study | None", seed: int) -> Twin:
    """See Dataset.twin."""
    document = dataset._document  # noqa: SLF001 - the same package
    if dataset._persons is not None:  # noqa: SLF001
        raise InvalidQuery("Ask the twin for its own view of persons: ds.twin().persons(...).")
    if document.get("tables"):
        raise InvalidQuery("There is no twin of a data set that links several tables.")
    m = int(document["unit"]["max_rows"])
    units = min(dataset.n, MOST_ROWS // m) if n is None else n
    rows = units * m
    if not (isinstance(units, int) and units >= 1 and rows <= MOST_ROWS):
        raise InvalidQuery(f"n must be a whole number, for 1 to {MOST_ROWS:,} rows; give it.")
    marginals = _marginals(dataset)
    columns = draw(marginals, _latent(marginals, study), rows, seed)
    missing = _missing(dataset, marginals, rows, seed)
    own = {
        **document,
        "n": units,
        "name": f"{dataset.name} (twin, not for inference)",
        "twin_of": dataset.name,
    }
    base = replace(dataset, name=own["name"], n=units, _document=own)
    kept = {each.name: getattr(base, each.name) for each in fields(Dataset)}
    wire = LocalWire(own, columns, missing)
    return Twin(**{**kept, "_http": wire, "columns": columns, "missing": missing})


def _marginals(dataset: Dataset) -> list[Marginal]:
    profile = dataset.profile()
    return [
        Marginal(
            column, profile.columns.get(column.name, {}), profile.probabilities_of(column.name)
        )
        for column in dataset.schema
    ]


def _latent(marginals: list[Marginal], study: "Study | None") -> FloatArray:
    if study is None:
        return np.eye(len(marginals))
    if study.result.get("groups"):
        raise NotFound("A study by group has moments of each group: give one without `by`.")
    known = study.corr()
    return correlations(marginals, known.names, np.asarray(known.values, np.float64))


def _missing(
    dataset: Dataset, marginals: list[Marginal], rows: int, seed: int
) -> dict[str, NDArray[np.bool_]]:
    """Of the columns that may be missing: as often as the profile says, else nowhere."""
    rng = np.random.default_rng([seed, 1])
    found = {}
    for marginal in marginals:
        if marginal.column.missing:
            share = float(marginal.figures.get("missing") or 0.0) / max(1, dataset.n)
            found[marginal.column.name] = rng.random(rows) < share
    return found
