# SPDX-License-Identifier: Apache-2.0
"""What the tests that have a name reply, and p-values of their statistics."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field
from scipy.special import ndtr, stdtr, stdtrit

from reticent_server.fitting.results import Interval
from reticent_server.kinds.fields import Name

Alternative = Annotated[
    Literal["two-sided", "less", "greater"],
    Field(description="What is claimed against the hypothesis: of the first group or column."),
]
Levels = Annotated[
    tuple[Name, ...] | None,
    Field(description="The levels of `group` that are compared; all of them without it."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult:
    """A test: statistic, its degrees of freedom, p-value, and the size of the effect with its
    interval.

    The null law and the interval count sampling and privacy noise. df is left out where the null
    law is normal. estimand: what `effect` is an estimate of. warnings: about groups that may have
    no record.
    """

    __test__ = False  # not for pytest

    statistic: float
    p_value: float
    effect: float
    effect_interval: Interval
    confidence_level: float
    estimand: str
    n: int
    df: float | None = None
    warnings: tuple[str, ...] | None = None


def t_p_value(statistic: float, df: float, alternative: str) -> float:
    """The p-value by Student's law with `df` degrees of freedom (any positive number)."""
    if alternative == "less":
        return float(stdtr(df, statistic))
    if alternative == "greater":
        return float(stdtr(df, -statistic))
    return float(2 * stdtr(df, -abs(statistic)))


def t_interval(
    value: float, sd: float, df: float, level: float, limits: tuple[float, float]
) -> Interval:
    """value ± t·sd, cut to what the quantity can be."""
    half = float(stdtrit(df, (1 + level) / 2)) * sd
    low, high = (min(max(end, limits[0]), limits[1]) for end in (value - half, value + half))
    return low, high


def normal_p_value(z: float, alternative: str) -> float:
    """The p-value of a standard normal z."""
    if alternative == "less":
        return float(ndtr(z))
    if alternative == "greater":
        return float(ndtr(-z))
    return float(2 * ndtr(-abs(z)))
