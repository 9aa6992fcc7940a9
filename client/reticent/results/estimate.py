# SPDX-License-Identifier: Apache-2.0
"""A single number with its standard error: counts, sums and means."""

from dataclasses import dataclass
from math import sqrt
from typing import Any

from scipy.special import ndtri, stdtrit

from reticent import _optional
from reticent._drawing import intervals, subject
from reticent._release import Release
from reticent._text import Text, number


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Estimate(Release):
    """A released count, sum or mean, in the units of the data.

    >>> count = ds.count('grade >= 7 and waterfront == "1"', epsilon=0.1)
    >>> total = ds.sum("bedrooms", where='waterfront == "1"', epsilon=0.5)
    >>> mean = ds.mean("price", where="grade >= 8", epsilon=0.5)
    >>> float(mean), mean.bse, mean.conf_int(alpha=0.1)

    Of a survey: ``ds.mean("bmi", weights="weight", cluster="psu", strata="stratum", epsilon=1.0)``.
    """

    @property
    def value(self) -> float:
        """The released estimate, with its noise, in the units of the question's answer."""
        return float(self.result["value"])

    @property
    def bse(self) -> float:
        """Standard error: sampling (of a mean) and privacy noise together."""
        return float(self.result["standard_error"])

    @property
    def privacy_bse(self) -> float:
        """The privacy noise's part of the standard error; for a count, which has no other, all."""
        return float(self.result.get("privacy_standard_error", self.bse))

    @property
    def sampling_bse(self) -> float:
        """The standard error without the privacy noise: √(bse² − privacy_bse²)."""
        return sqrt(max(0.0, self.bse**2 - self.privacy_bse**2))

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use)."""
        return int(self.result["n"])

    def conf_int(self, alpha: float = 0.05) -> tuple[float, float]:
        """(lower, upper) of the 1 − alpha interval, by the normal law; of a survey's design by its
        t law."""
        df = self.result.get("degrees_of_freedom")
        law = ndtri(1 - alpha / 2) if df is None else stdtrit(df, 1 - alpha / 2)
        half = float(law) * self.bse
        return self.value - half, self.value + half

    @property
    def design_effect(self) -> float | None:
        """Of a survey's mean, its sampling variance over that of as many records drawn at random
        (Kish); None where noise hides it, and of others.
        """
        given = self.result.get("design_effect")
        return None if given is None else float(given)

    def to_frame(self) -> Any:
        """A pandas.DataFrame of one row; needs pandas."""
        lower, upper = self.conf_int()
        row = {"value": self.value, "bse": self.bse, "privacy_bse": self.privacy_bse}
        kind = str(self.query["kind"])
        return _optional.pandas().DataFrame([row | {"lower": lower, "upper": upper}], index=[kind])

    def plot(self, ax: Any = None) -> Any:
        """The value with its 95 % interval; needs matplotlib, gives the Axes."""
        kind = str(self.query["kind"])
        axes = intervals([kind], [self.value], [self.conf_int()], ax)
        axes.set_xlabel(f"{subject(self.query)}, 95 % interval")
        return axes

    def __float__(self) -> float:
        return self.value

    def summary(self) -> Text:
        lower, upper = self.conf_int()
        lines = [
            *self._headline(),
            "",
            f"{number(self.value)}   95 % interval [{number(lower)}, {number(upper)}]",
            f"standard error {number(self.bse)}, of which privacy {number(self.privacy_bse)}",
            *self._design(),
            *self.result.get("warnings", ()),
            *self._warning(),
            "",
            *self._footer(),
        ]
        return Text("\n".join(lines))

    def check(self) -> None:
        Release.check(self)
        _ = (self.value, self.bse, self.privacy_bse, self.nobs)

    def _design(self) -> list[str]:
        """Of a survey's design."""
        if "design_effect" not in self.result:
            return []
        parts = [f"degrees of freedom {number(self.result['degrees_of_freedom'])}"]
        if self.design_effect is not None:
            parts = [f"design effect {number(self.design_effect)}", *parts]
        if self.result["clusters"] is not None:
            parts = [f"sampling units {self.result['clusters']:,.0f}", *parts]
        return ["   ".join(parts)]

    def _warning(self) -> list[str]:
        if abs(self.value) > 2 * self.privacy_bse:
            return []
        return ["The value is not larger than its privacy noise; use a larger epsilon."]
