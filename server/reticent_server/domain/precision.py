# SPDX-License-Identifier: Apache-2.0
"""How wide the intervals of a release will be, from public facts: what an ε is looked for by
(pipeline.wanted)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, inf, sqrt

# the normal law's .975 quantile: intervals are of 95 %, the field's convention
Z = 1.959963984540054


@dataclass(frozen=True, slots=True)
class ForecastPrecision:
    """What is expected of each number of a release that has an interval: its name, and the expected
    standard deviations of noise and of sampling.

    names, privacy, sampling: (k,). privacy inf: the noise is expected to leave no interval.
    sampling 0: the number is about the table itself; None: public facts do not say. in_units:
    whether the deviations are in the units of the data, so that widths mean something; else only
    their ratio does.
    """

    names: tuple[str, ...]
    privacy: tuple[float, ...]
    sampling: tuple[float | None, ...]
    in_units: bool = True

    @property
    def ci_ratios(self) -> tuple[float | None, ...]:
        """(k,) the interval's width over the one that sampling alone would give; None where there
        is no such one."""
        return tuple(
            hypot(privacy, sampling) / sampling if sampling else None
            for privacy, sampling in zip(self.privacy, self.sampling, strict=True)
        )

    @property
    def half_widths(self) -> tuple[float | None, ...]:
        """(k,) half of the 95 % interval; None: not in units, or sampling is not known."""
        return tuple(
            None if sampling is None or not self.in_units else Z * hypot(privacy, sampling)
            for privacy, sampling in zip(self.privacy, self.sampling, strict=True)
        )

    def noise_for_ratio(self, place: int, ratio: float) -> float | None:
        """The deviation of noise that a ratio of widths allows; None where there is no ratio."""
        sampling = self.sampling[place]
        return sampling * sqrt(ratio**2 - 1) if sampling else None

    def noise_for_half_width(self, place: int, half_width: float) -> float | None:
        """The deviation of noise that half a width allows, 0 where sampling alone takes it; None:
        not in units, or sampling is not known."""
        sampling = self.sampling[place]
        if sampling is None or not self.in_units:
            return None
        return sqrt(max(0.0, (half_width / Z) ** 2 - sampling**2))


def single(name: str, privacy: float, sampling: float | None) -> ForecastPrecision:
    """The forecast precision of a release of one number."""
    return ForecastPrecision((name,), (privacy,), (sampling,))


def from_ratios(names: Sequence[str], ratios: Sequence[float | None]) -> ForecastPrecision:
    """Where only ratios of noise to sampling deviations are forecast; a ratio of None: no interval
    is expected."""
    privacy = tuple(inf if ratio is None else float(ratio) for ratio in ratios)
    return ForecastPrecision(tuple(names), privacy, (1.0,) * len(privacy), in_units=False)
