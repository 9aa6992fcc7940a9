# SPDX-License-Identifier: Apache-2.0
"""From the replies of a model's samples to a line."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from benchmarks.gauntlet import goals
from benchmarks.gauntlet.goals import IntervalCounts
from benchmarks.gauntlet.lines import FitLine
from benchmarks.gauntlet.replies import Estimates
from benchmarks.gauntlet.targets import WholeTableTarget
from reticent_server.domain.steps import FloatArray

Z = float(ndtri(0.975))  # of a 95 % interval


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """R replies beside their target: all (R, q), NaN where there is none.

    z: of the intervals that were given; errors, privacy: standard errors over the target's sampling
    ones; forecast: the plan's ratio of privacy and sampling; known: where an interval was given.
    """

    terms: tuple[str, ...]
    z: FloatArray
    errors: FloatArray
    privacy: FloatArray
    forecast: FloatArray
    known: np.ndarray


def gathered(
    replies: Sequence[Estimates], forecasts: Sequence[FloatArray], target: WholeTableTarget
) -> Samples:
    """The replies in units of the target's standard errors; no interval counts about what the table
    does not identify.
    """
    b, se, privacy = (
        np.array([getattr(e, name) for e in replies])
        for name in ("coefficients", "errors", "privacy")
    )
    known = np.array([e.estimable for e in replies]) & np.isfinite(se)
    known &= np.isfinite(target.coefficients)
    s = target.standard_errors
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(known, (b - target.coefficients) / se, np.nan)
        return Samples(replies[0].terms, z, se / s, privacy / s, np.array(forecasts), known)


def fit_line(
    model: str,
    kind: str,
    n: int,
    epsilon: float,
    samples: Samples,
    no_reply: float,
    *,
    collinear: bool = False,
) -> FitLine:
    """The line of R samples; a figure that nothing tells of is NaN. collinear: terms depend on each
    other linearly, so that flags are right whatever the noise.
    """
    s = samples
    held = np.where(s.known, np.abs(s.z) <= Z, np.nan)
    root = np.sqrt(_mean(s.z**2, 0))
    worst = int(np.nanargmax(root)) if np.isfinite(root).any() else 0
    wild, short = s.known & (s.errors > goals.WILD), s.known & (s.errors < goals.SHORT)
    needless = ~s.known & (s.privacy < goals.DOMINATED) & (not collinear)
    ratios = np.where(s.known, s.forecast / s.privacy, np.nan)
    by_term, by_fit = _median(ratios, 0), _median(ratios, 1)
    return FitLine(
        model=model,
        kind=kind,
        n=n,
        epsilon=epsilon,
        coverage=float(_mean(_mean(held, 1))),
        rms_z=float(np.sqrt(_mean(s.z**2))),
        worst=s.terms[worst],
        worst_coverage=float(_mean(held, 0)[worst]),
        worst_z=float(_mean(s.z, 0)[worst]),
        flagged=float(1 - s.known.mean()),
        needless=float(needless.mean()),
        silent=float(np.isnan(s.forecast).mean()),
        noise=float(_median(np.where(s.known, s.privacy, np.nan))),
        forecast=float(_median(by_fit)),
        furthest=_furthest(by_term),
        wild=float(_mean(np.where(s.known, wild, np.nan))),
        short=float(_mean(np.where(s.known, short, np.nan))),
        no_reply=no_reply,
        counts=IntervalCounts(
            fits=int(s.known.any(1).sum()),
            wild=int(wild.any(1).sum()),
            short=int(short.any(1).sum()),
            needless=int(needless.any(1).sum()),
            forecast_low=int((by_fit < goals.FORECAST[0]).sum()),
            forecast_high=int((by_fit > goals.FORECAST[1]).sum()),
            forecasts=int(np.isfinite(by_fit).sum()),
        ),
    )


def _furthest(ratios: FloatArray) -> float:
    """Of ratios (q,), the one furthest from 1."""
    logs = np.abs(np.log(np.where(ratios > 0, ratios, np.nan)))
    return float(ratios[np.nanargmax(logs)]) if np.isfinite(logs).any() else float("nan")


def _mean(x: FloatArray, axis: int | None = None) -> FloatArray:
    """nanmean, NaN without a warning where there is nothing."""
    number = np.isfinite(x).sum(axis)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.nansum(x, axis) / number)


def _median(x: FloatArray, axis: int | None = None) -> FloatArray:
    """The median of the finite values, NaN without a warning where there is none."""
    filled = np.ma.masked_invalid(x)
    return np.asarray(np.ma.filled(np.ma.median(filled, axis=axis), np.nan), dtype=float)
