# SPDX-License-Identifier: Apache-2.0
"""The test of proportional hazards of a released fit: R's `cox.zph`, by bins of time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent import _optional
from reticent._drawing import SAMPLING, TOTAL, axes_of
from reticent._text import Text, number, probability, text_table

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ProportionalHazards:
    """Whether a hazard ratio changes with time. B bins of time, k terms.

    ends, events: (B,) of the bins, which follow one another from 0, and about how many events are
    in each. params, bse: (B, k) coefficients in each bin, with standard errors of sampling and
    noise. trends: (k,) by how much a coefficient changes from the first event to the last, along
    the share of events; pvalues: (k,) of no change, nan where the fit has no interval of the term.
    statistic, df, pvalue: of all terms together. Costs nothing: it is a part of the fit's release.
    """

    names: tuple[str, ...]
    ends: FloatArray
    events: FloatArray
    params: FloatArray
    bse: FloatArray
    ci: FloatArray
    trends: FloatArray
    trend_bse: FloatArray
    pvalues: FloatArray
    statistic: float
    df: int
    pvalue: float
    level: float

    def conf_int(self) -> FloatArray:
        """(B, k, 2) released intervals of the coefficients in each bin; nan where there is none."""
        return self.ci

    @property
    def begins(self) -> FloatArray:
        """(B,) where the bins begin."""
        return np.append(0.0, self.ends[:-1])

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row for each term and bin; needs pandas."""
        B, k = self.params.shape
        columns = {
            "term": np.repeat(self.names, B),
            "begin": np.tile(self.begins, k),
            "end": np.tile(self.ends, k),
            "events": np.tile(self.events, k),
            "coef": self.params.T.ravel(),
            "bse": self.bse.T.ravel(),
            "lower": self.ci[:, :, 0].T.ravel(),
            "upper": self.ci[:, :, 1].T.ravel(),
        }
        return _optional.pandas().DataFrame(columns)

    def summary(self) -> Text:
        """A line for each term, and one for all: as `cox.zph` prints it."""
        squares = (self.trends / self.trend_bse) ** 2
        told = np.isfinite(self.pvalues)
        lines = zip(self.names, self.trends, squares, self.pvalues, told, strict=True)
        rows = [
            (name, number(t), number(s) if ok else "", "1", probability(p) if ok else "")
            for name, t, s, p, ok in lines
        ]
        rows.append(
            ("all terms", "", number(self.statistic), str(self.df), probability(self.pvalue))
        )
        table = text_table(("", "change", "chisq", "df", "p"), rows)
        bins = ", ".join(f"{end:g}" for end in self.ends)
        return Text("\n".join([*table, "", f"Bins of time end at {bins}."]))

    def __repr__(self) -> str:
        return str(self.summary())

    def plot(self, term: str | None = None, ax: Any = None) -> Any:
        """A term's coefficient in each bin of time with its interval (the first term's without a
        name); needs matplotlib, gives the Axes. Raises ValueError for a term that is not there.
        """
        j = _index(self.names, self.names[0] if term is None else term)
        axes = axes_of(ax)
        for bounds in zip(self.begins, self.ends, self.params[:, j], self.ci[:, j], strict=True):
            begin, end, value, (low, high) = bounds
            if np.isfinite([value, low, high]).all():
                axes.fill_between([begin, end], low, high, color=TOTAL, alpha=0.6, linewidth=0)
                axes.plot([begin, end], [value, value], color=SAMPLING, linewidth=2)
        axes.axhline(0.0, color="black", linewidth=0.8, linestyle=":")
        axes.set_xlabel("time")
        axes.set_ylabel(f"coefficient of {self.names[j]}, {100 * self.level:g} % interval")
        return axes


def _index(names: Sequence[str], term: str) -> int:
    if term not in names:
        raise ValueError(f"term must be one of: {', '.join(names)}")
    return list(names).index(term)


def proportional_hazards(
    names: tuple[str, ...], found: Mapping[str, Any], level: float
) -> ProportionalHazards:
    """From the field of a reply. Raises ValueError where its sizes do not agree."""
    bins, k = found["bins"], len(names)
    B = len(bins)

    def by_bin(name: str, *shape: int) -> FloatArray:
        return _array([each[name] for each in bins], (B, *shape))

    trends, trend_bse, pvalues = (
        _array(found[name], (k,)) for name in ("trends", "standard_errors", "p_values")
    )
    return ProportionalHazards(
        names,
        by_bin("end"),
        by_bin("events"),
        by_bin("coefficients", k),
        by_bin("standard_errors", k),
        by_bin("confidence_intervals", k, 2),
        trends,
        trend_bse,
        pvalues,
        _number(found.get("statistic")),
        int(found["df"]),
        _number(found.get("p_value")),
        level,
    )


def _array(values: Any, shape: tuple[int, ...]) -> FloatArray:
    found = np.array(values, dtype=np.float64)
    if found.shape != shape:
        raise ValueError("a test of proportional hazards has a value for each term, in each bin")
    return found


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)
