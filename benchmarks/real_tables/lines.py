# SPDX-License-Identifier: Apache-2.0
"""One line a model and ε: how the intervals of its samples did."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtri

from benchmarks.real_tables.alone import Ruled
from benchmarks.real_tables.reasons import Kept, kept_back, reasons
from benchmarks.real_tables.textbook import Textbook
from reticent_server.domain.steps import FloatArray

WILD_STATED, WILD_SAMPLING, LEAST_SPREAD = 10.0, 20.0, 0.5
"""A fit is wild with an error above 10 stated errors or 20 sampling errors, or stated errors below
half of the spread over the samples that have an interval.
"""
QUIET = 3.0  # privacy over sampling standard error, as a plan forecasts them
Z = float(ndtri(0.975))


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """What one reply says of q terms: all (q,). lower, upper: NaN without an interval. warned:
    whether it warns. reasons: (q,) of benchmarks.real_tables.reasons; ruled: as of
    benchmarks.real_tables.alone, where that is asked. quiet: (q,) whether the plan forecast an
    interval and a noise below QUIET.
    """

    coefficients: FloatArray
    errors: FloatArray
    lower: FloatArray
    upper: FloatArray
    privacy: FloatArray
    warned: bool
    reasons: Sequence[str] = ()
    ruled: Ruled = field(default_factory=dict)
    quiet: np.ndarray | None = None

    @classmethod
    def of(cls, result: dict[str, Any], forecast: dict[str, Any] | None = None) -> "Sample":
        bounds = np.array(result["confidence_intervals"], dtype=float).reshape(-1, 2)
        names = "coefficients", "standard_errors", "privacy_standard_errors"
        beta, errors, privacy = (np.array(result[k], dtype=float) for k in names)
        warned = bool(result["warnings"])
        ratios = (forecast or {}).get("privacy_to_sampling", [None] * len(beta))
        quiet = np.array([ratio is not None and ratio < QUIET for ratio in ratios])
        lower, upper = bounds.T
        return cls(beta, errors, lower, upper, privacy, warned, reasons(result), quiet=quiet)


@dataclass(frozen=True, slots=True)
class RealLine:
    """own, textbook: coverage of the reply's own target and of OLS's or ML's by the intervals
    given; given: their share; wild: share of fits; width: half-widths over the textbook's, median;
    noise: privacy over the textbook's errors, median; worst: the term that the textbook's is
    covered least of, its coverage, and its mean error in those errors; warned: share of replies;
    quiet: the share given where a plan forecast less noise than QUIET; kept_back: why others have
    none.
    NaN where there are none.
    """

    asked: str
    model: str
    n: int
    epsilon: float
    own: float
    textbook: float
    given: float
    wild: float
    width: float
    noise: float
    worst: str
    worst_coverage: float
    worst_error: float
    warned: float
    quiet: float = float("nan")
    kept_back: Kept = field(default_factory=dict)

    def text(self) -> str:
        return (
            f"{self.asked:9s} {self.model:30s} n={self.n:<6d} eps={self.epsilon:<4g} own "
            f"{self.own:.2f} textbook {self.textbook:.2f} given {self.given:.2f} quiet "
            f"{self.quiet:.2f} wild {self.wild:.2f} width {self.width:.2f} noise "
            f"{self.noise:.2f} warned {self.warned:.2f} | worst {self.worst}: "
            f"{self.worst_coverage:.2f}"
            f" error {self.worst_error:+.1f}"
        )

    def json(self) -> dict[str, Any]:
        return asdict(self)


def line(
    asked: str,
    model: str,
    size: tuple[int, float],
    samples: Sequence[Sample],
    own: FloatArray | None,
    target: Textbook,
) -> RealLine:
    """size: n and ε. own: (q,) the reply's own target, None where it is not known."""
    n, epsilon = size
    beta, errors, lower, upper, privacy = (
        np.array([getattr(s, k) for s in samples])
        for k in ("coefficients", "errors", "lower", "upper", "privacy")
    )
    known, se = np.isfinite(lower), target.standard_errors
    held = (lower <= target.coefficients) & (target.coefficients <= upper)
    off = (beta - target.coefficients) / se
    about = off if own is None else (beta - own) / se
    each = _means(held, known)
    worst = int(np.nanargmin(each)) if known.any() else 0
    spread = _spread(about, known)
    stated = np.where(known, errors / se, np.nan)
    wild = known & (
        (np.abs(about) > WILD_STATED * stated)
        | (np.abs(about) > WILD_SAMPLING)
        | (stated < LEAST_SPREAD * spread)
    )
    return RealLine(
        asked=asked,
        model=model,
        n=n,
        epsilon=epsilon,
        own=np.nan if own is None else _mean((lower <= own) & (own <= upper), known),
        textbook=_mean(held, known),
        given=float(known.mean()),
        wild=float(wild.any(axis=1).mean()),
        width=_median((upper - lower)[known] / (2 * Z * np.broadcast_to(se, known.shape)[known])),
        noise=_median((privacy / se)[known]),
        worst=target.terms[worst],
        worst_coverage=float(each[worst]),
        worst_error=_mean(off[:, worst], known[:, worst]),
        warned=float(np.mean([s.warned for s in samples])),
        quiet=_mean(known, np.array([_forecast(s) for s in samples])),
        kept_back=kept_back(samples, target, Z),
    )


def _forecast(sample: Sample) -> np.ndarray:
    """(q,) of a sample, none without a forecast."""
    none = np.zeros(len(sample.coefficients), dtype=bool)
    return none if sample.quiet is None else sample.quiet


def _mean(values: FloatArray, where: np.ndarray) -> float:
    return float(values[where].mean()) if where.any() else float("nan")


def _means(values: np.ndarray, where: np.ndarray) -> FloatArray:
    """(q,) means of the columns over `where`; NaN without one."""
    number = where.sum(axis=0)
    return np.where(number > 0, (values & where).sum(axis=0) / np.maximum(number, 1), np.nan)


def _spread(values: FloatArray, where: np.ndarray) -> FloatArray:
    """(q,) standard deviations of the columns over `where`; 0 of less than two."""
    number = where.sum(axis=0)
    squares = np.where(where, (values - np.nan_to_num(_averages(values, where))) ** 2, 0.0)
    return np.sqrt(squares.sum(axis=0) / np.maximum(number - 1, 1))


def _averages(values: FloatArray, where: np.ndarray) -> FloatArray:
    """(q,) averages of the columns over `where`; NaN of none."""
    number = where.sum(axis=0)
    return np.where(
        number > 0, np.where(where, values, 0.0).sum(axis=0) / np.maximum(number, 1), np.nan
    )


def _median(values: FloatArray) -> float:
    return float(np.median(values)) if values.size else float("nan")
