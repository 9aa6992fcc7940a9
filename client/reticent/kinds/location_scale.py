# SPDX-License-Identifier: Apache-2.0
"""Location and scale of a column, by Huber's Proposal 2."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from reticent import _optional
from reticent._drawing import intervals, subject
from reticent._release import Release
from reticent._text import Text, number, paragraph
from reticent._vector import Vector

_NAMES = ("location", "scale")


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class LocationScaleResults(Release):
    """A released location and scale, in the units of the data.

    Standard errors and intervals count sampling and privacy noise; `estimable` says which of the
    two the release can tell from noise.

    >>> found = ds.location_scale("price", epsilon=1.0)
    >>> found.location, found.scale, found.bse["location"]
    """

    @property
    def location(self) -> float:
        """Huber's location, in the column's units."""
        return float(self.result["location"])

    @property
    def scale(self) -> float:
        """Huber's scale: at normal data the standard deviation, in the column's units."""
        return float(self.result["scale"])

    @property
    def params(self) -> Vector:
        """(2,) location and scale."""
        return Vector([self.location, self.scale], _NAMES)

    @property
    def bse(self) -> Vector:
        """(2,) standard errors."""
        return Vector(self.result["standard_errors"], _NAMES)

    @property
    def privacy_bse(self) -> Vector:
        """(2,) the privacy noise's part of the standard errors."""
        return Vector(self.result["privacy_standard_errors"], _NAMES)

    @property
    def estimable(self) -> tuple[bool, ...]:
        """Whether the location and the scale stand out from the privacy noise, in this order."""
        return tuple(bool(flag) for flag in self.result["estimable"])

    @property
    def tuning(self) -> float:
        """Huber's c, in units of the scale."""
        return float(self.result["tuning"])

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use)."""
        return int(self.result["n"])

    def cov_params(self) -> NDArray[np.float64]:
        """(2, 2) covariance of location and scale."""
        return np.array(self.result["covariance"], dtype=np.float64)

    def conf_int(self, alpha: float = 0.05) -> NDArray[np.float64]:
        """(2, 2) intervals of level 1 − alpha, one row each; NaN where not identifiable."""
        half = float(ndtri(1 - alpha / 2)) * np.asarray(self.bse)
        centre = np.asarray(self.params)
        intervals = np.column_stack([centre - half, centre + half])
        intervals[~np.array(self.estimable)] = np.nan
        return intervals

    def to_frame(self) -> Any:
        """A pandas.DataFrame with a row for location and one for scale; needs pandas."""
        lower, upper = self.conf_int().T
        columns = {
            "value": np.asarray(self.params),
            "bse": np.asarray(self.bse),
            "privacy_bse": np.asarray(self.privacy_bse),
            "lower": lower,
            "upper": upper,
            "estimable": np.array(self.estimable),
        }
        return _optional.pandas().DataFrame(columns, index=list(_NAMES))

    def plot(self, ax: Any = None) -> Any:
        """Location and scale with their 95 % intervals; needs matplotlib, gives the Axes."""
        labels = [
            name + ("" if ok else " (not identifiable)")
            for name, ok in zip(self.params.names, self.estimable, strict=True)
        ]
        axes = intervals(labels, self.params.tolist(), self.conf_int(), ax)
        axes.set_xlabel(f"{subject(self.query)}, 95 % interval")
        return axes

    def summary(self) -> Text:
        rows = zip(_NAMES, self.params.tolist(), self.bse.tolist(), self.conf_int(), strict=True)
        lines = [*self._headline(), f"Records: {self.nobs:,}   c = {self.tuning:g}", ""]
        for name, value, bse, (lower, upper) in rows:
            interval = f"95 % interval [{number(lower)}, {number(upper)}]"
            known = interval if np.isfinite(lower) else "not identifiable"
            lines.append(f"{name:9} {number(value)}   standard error {number(bse)}   {known}")
        for warning in self.result.get("warnings") or ():
            lines += paragraph(str(warning), "- ")
        return Text("\n".join([*lines, "", *self._footer()]))

    def check(self) -> None:
        Release.check(self)
        _ = (self.params, self.bse, self.privacy_bse, self.nobs, self.tuning)
        if (self.cov_params().shape, len(self.estimable)) != ((2, 2), 2):
            raise ValueError("location and scale have a 2 by 2 covariance")
