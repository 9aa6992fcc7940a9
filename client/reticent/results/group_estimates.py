# SPDX-License-Identifier: Apache-2.0
"""One number a group with its standard error, and the differences between groups.

Several differences at once: with p-values p of single ones, Holm's are the running maxima of
(m − k + 1)p₍ₖ₎ (Holm 1979), Bonferroni's mp. Of all pairs of G groups, Tukey's compare |d|/se·√2
with the range of G normal values, each pair with its own error, as Games and Howell (1976) do; a
released error counts the noise, whose variance is known, so that the law has no degrees of freedom
to be estimated but in tiny groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf, sqrt
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from reticent import _optional
from reticent._drawing import intervals, subject
from reticent._release import Release
from reticent._text import Text, number, probability, text_table
from reticent._vector import FloatArray, Vector

_ADJUSTMENTS = ("none", "tukey", "holm", "bonferroni")


def _ends(values: FloatArray, bse: FloatArray, alpha: float) -> FloatArray:
    half = float(ndtri(1 - alpha / 2)) * bse
    return np.stack([values - half, values + half], axis=1)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class GroupDifferences:
    """Differences between the groups of one release, free: the errors of two groups are
    independent.

    values, bse: named "b - a". groups: how many were compared with each other, 0 where not all
    pairs were. Intervals and p-values are of one difference by itself, or, with `adjust`, of all of
    them at once: "tukey" (of all pairs, each with its own error: Games and Howell's), "holm",
    "bonferroni".

    >>> ds.mean("price", by="condition", epsilon=1.0).differences().pvalues("tukey")
    """

    values: Vector
    bse: Vector
    groups: int = 0

    def pvalues(self, adjust: str = "none") -> Vector:
        """Two-sided, of no difference. Raises ValueError for an unknown adjustment."""
        ratio = np.abs(np.asarray(self.values) / np.asarray(self.bse))
        single = 2 * ndtr(-ratio)
        match _known(adjust):
            case "tukey":
                found = _range_of_normals().sf(ratio * sqrt(2), self._all_pairs(), inf)
            case "holm":
                found = _holm(single)
            case "bonferroni":
                found = np.minimum(single * len(single), 1.0)
            case _:
                found = single
        return Vector(np.asarray(found), self.values.names)

    def conf_int(self, alpha: float = 0.05, adjust: str = "none") -> FloatArray:
        """(pairs, 2) intervals by the normal law; holm's are Bonferroni's, since it has none."""
        match _known(adjust):
            case "tukey":
                law = _range_of_normals()
                reach = float(law.ppf(1 - alpha, self._all_pairs(), inf)) / sqrt(2)
            case "none":
                reach = float(ndtri(1 - alpha / 2))
            case _:
                reach = float(ndtri(1 - alpha / (2 * len(self.values))))
        values, half = np.asarray(self.values), reach * np.asarray(self.bse)
        return np.stack([values - half, values + half], axis=1)

    def to_frame(self, adjust: str = "none") -> Any:
        """A pandas.DataFrame with one row for each pair; needs pandas."""
        lower, upper = self.conf_int(adjust=adjust).T
        columns = {"difference": self.values.tolist(), "bse": self.bse.tolist()}
        more = {"lower": lower, "upper": upper, "pvalue": self.pvalues(adjust).tolist()}
        return _optional.pandas().DataFrame(columns | more, index=list(self.values.names))

    def summary(self, adjust: str = "none") -> Text:
        """A table of the differences, with standard errors, 95 % intervals and p-values.
        adjust: "none", "holm", "bonferroni" or "tukey", as of `conf_int` and `pvalues`."""
        columns = (
            self.values.tolist(),
            self.bse.tolist(),
            *self.conf_int(adjust=adjust).T.tolist(),
        )
        cells = zip(*(map(number, column) for column in columns), strict=True)
        p = map(probability, self.pvalues(adjust).tolist())
        named = zip(self.values.names, cells, p, strict=True)
        rows = [(name, *row, each) for name, row, each in named]
        header = ("", "difference", "std err", "[0.025", "0.975]", "p")
        return Text("\n".join(text_table(header, rows)))

    def __repr__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def _all_pairs(self) -> int:
        if self.groups < 2:
            raise ValueError("tukey is of all pairs of groups: take differences() of no reference.")
        return self.groups


def pairwise_differences(
    levels: Sequence[str], values: FloatArray, bse: FloatArray, reference: str | None = None
) -> GroupDifferences:
    """Of every pair of groups, or of each group from `reference`. Raises KeyError."""
    if reference is not None and reference not in levels:
        raise KeyError(f"{reference}: the levels are {', '.join(levels)}")
    pairs = list(combinations(range(len(levels)), 2))
    if reference is not None:
        start = levels.index(reference)
        pairs = [(start, k) for k in range(len(levels)) if k != start]
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    names = [f"{levels[b]} - {levels[a]}" for a, b in pairs]
    return GroupDifferences(
        Vector(values[second] - values[first], names),
        Vector(np.hypot(bse[first], bse[second]), names),
        len(levels) if reference is None else 0,
    )


def _range_of_normals() -> Any:
    from scipy.stats import studentized_range  # noqa: PLC0415 - half a second

    return studentized_range


def _known(adjust: str) -> str:
    if adjust not in _ADJUSTMENTS:
        raise ValueError(f"adjust is one of {', '.join(_ADJUSTMENTS)}")
    return adjust


def _holm(single: FloatArray) -> FloatArray:
    order = np.argsort(single, kind="stable")
    factors = len(single) - np.arange(len(single))
    found = np.empty_like(single)
    found[order] = np.minimum(np.maximum.accumulate(single[order] * factors), 1.0)
    return found


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class GroupEstimates(Release):
    """A released count, sum or mean of each group, in the units of the data: one release, charged
    once.

    >>> found = ds.mean("price", by="waterfront", epsilon=0.5)
    >>> found.values["1"], found.conf_int(), found.differences()
    """

    @property
    def by(self) -> str:
        """The column of the groups."""
        return str(self.result["by"])

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of the `by` column, in the schema's order."""
        return tuple(str(group["level"]) for group in self.result["groups"])

    @property
    def values(self) -> Vector:
        """The estimates with their groups' names."""
        return self._vector("value")

    @property
    def bse(self) -> Vector:
        """Standard errors: sampling (of a mean) and privacy noise together."""
        return self._vector("standard_error")

    @property
    def privacy_bse(self) -> Vector:
        """The privacy noise's part of the standard errors; of counts and sums, which have no other,
        all.
        """
        found = [g.get("privacy_standard_error", g["standard_error"]) for g in self._groups]
        return Vector(found, self.levels)

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use)."""
        return int(self.result["n"])

    def conf_int(self, alpha: float = 0.05) -> FloatArray:
        """(groups, 2) intervals: at 0.05 those that were released, else by the normal law.

        A released interval of a mean is all of what the declared bounds allow where the group is
        too small to say more.
        """
        released = [group["confidence_interval"] for group in self._groups]
        level = float(self._groups[0]["confidence_level"])
        if abs(1 - alpha - level) < 1e-12:
            return np.array(released, dtype=np.float64)
        return _ends(np.asarray(self.values), np.asarray(self.bse), alpha)

    def differences(self, reference: str | None = None) -> GroupDifferences:
        """Of every pair of groups, or of each group from `reference`, with intervals. Raises
        KeyError for an unknown level.

        >>> ds.mean("price", by="waterfront", epsilon=0.5).differences("0")
        """
        values, bse = np.asarray(self.values), np.asarray(self.bse)
        return pairwise_differences(self.levels, values, bse, reference)

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row for each group; needs pandas."""
        lower, upper = self.conf_int().T
        columns = {"value": self.values, "bse": self.bse, "privacy_bse": self.privacy_bse}
        data = {name: column.tolist() for name, column in columns.items()}
        index = _optional.pandas().Index(self.levels, name=self.by)
        return _optional.pandas().DataFrame(data | {"lower": lower, "upper": upper}, index=index)

    def plot(self, ax: Any = None) -> Any:
        """Every group's value with its 95 % interval; needs matplotlib, gives the Axes."""
        axes = intervals(self.levels, self.values.tolist(), self.conf_int(), ax)
        axes.set_ylabel(self.by)
        axes.set_xlabel(f"{self.query['kind']} of {subject(self.query)}, 95 % interval")
        return axes

    def summary(self) -> Text:
        columns = (self.values, self.bse, self.privacy_bse, *self.conf_int().T)
        cells = zip(*(map(number, column.tolist()) for column in columns), strict=True)
        rows = [(level, *row) for level, row in zip(self.levels, cells, strict=True)]
        header = (self.by, "value", "std err", "privacy", "[0.025", "0.975]")
        table = text_table(header, rows)
        return Text("\n".join([*self._headline(), "", *table, "", *self._footer()]))

    def check(self) -> None:
        Release.check(self)
        _ = (self.by, self.values, self.bse, self.privacy_bse, self.nobs, self.conf_int())

    @property
    def _groups(self) -> list[Any]:
        return list(self.result["groups"])

    def _vector(self, member: str) -> Vector:
        return Vector([group[member] for group in self._groups], self.levels)
