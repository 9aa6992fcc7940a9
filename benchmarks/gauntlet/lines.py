# SPDX-License-Identifier: Apache-2.0
"""One line of the gauntlet: what a model's replies came to at one ε."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from benchmarks.gauntlet import goals
from benchmarks.gauntlet.goals import IntervalCounts, Verdict


class Line(Protocol):
    model: str
    kind: str
    n: int
    epsilon: float

    @property
    def declined(self) -> bool: ...
    def verdicts(self) -> Iterator[Verdict]: ...
    def text(self) -> str: ...
    def json(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class FitLine:
    """Of a model with coefficients.

    worst: the term with the largest root mean squared z. flagged: share of coefficients without an
    interval; needless: of those, with a released noise below 3 sampling errors. noise: median of
    privacy over sampling standard errors; forecast: median of the plan's over the released ratio,
    furthest: of the worst term. silent: share of coefficients that the plan had said it would not
    identify.
    """

    model: str
    kind: str
    n: int
    epsilon: float
    coverage: float
    rms_z: float
    worst: str
    worst_coverage: float
    worst_z: float
    flagged: float
    needless: float
    silent: float
    noise: float
    forecast: float
    furthest: float
    wild: float
    short: float
    no_reply: float
    counts: IntervalCounts

    @property
    def declined(self) -> bool:
        return self.flagged >= goals.DECLINED

    def verdicts(self) -> Iterator[Verdict]:
        """Of a declined model only that it is one: it says nothing else."""
        yield goals.answered_verdict(self.flagged)
        if self.declined:
            return
        c = self.counts
        yield goals.coverage_verdict(self.coverage, c.fits)
        yield goals.rms_verdict(self.rms_z, c.fits)
        yield goals.rare_verdict("wild", c.wild, c.fits)
        yield goals.rare_verdict("short", c.short, c.fits)
        yield goals.rare_verdict("needless flags", c.needless, c.fits)
        if self.noise < goals.DOMINATED and np.isfinite(self.forecast):
            yield goals.forecast_verdict(self.forecast, c)

    def text(self) -> str:
        return (
            f"{self.kind} | {self.model} | n={self.n} eps={self.epsilon:g} | cov "
            f"{self.coverage:.2f} rms {self.rms_z:.2f}"
            f" | worst {self.worst}: cov {self.worst_coverage:.2f} z {self.worst_z:+.1f}"
            f" | flagged {self.flagged:.2f} needless {self.needless:.2f} | privacy/sampling "
            f"{self.noise:.2f}"
            f" forecast/released {self.forecast:.2g} worst {self.furthest:.2g}"
            f" | wild {self.wild:.3f} short {self.short:.3f}"
            + (f" | no reply {self.no_reply:.2f}" if self.no_reply else "")
        )

    def json(self) -> dict[str, Any]:
        return {"type": "fit", **asdict(self)}


@dataclass(frozen=True, slots=True)
class RankLine:
    """Of quantiles. error: root mean squared rank error, forecast: the plan's, worst: the largest;
    in records.
    """

    model: str
    kind: str
    n: int
    epsilon: float
    error: float
    forecast: float
    worst: float

    @property
    def declined(self) -> bool:
        return False

    def verdicts(self) -> Iterator[Verdict]:
        """The forecast is of a scale, of which a quantile's error is a small multiple."""
        far = self.error > 5 * self.forecast
        yield Verdict("forecast", not far, far)

    def text(self) -> str:
        return (
            f"{self.kind} | {self.model} | n={self.n} eps={self.epsilon:g} | rank error "
            f"{self.error:.1f} records,"
            f" worst {self.worst:.0f}, forecast scale {self.forecast:.1f}"
        )

    def json(self) -> dict[str, Any]:
        return {"type": "rank", **asdict(self)}


@dataclass(frozen=True, slots=True)
class LevelLine:
    """Of a test whose hypothesis is true: rejections at 5 % of the samples with a p-value, and
    those without one.
    """

    model: str
    kind: str
    n: int
    epsilon: float
    rejected: int
    tests: int
    flagged: int

    @property
    def declined(self) -> bool:
        return self.flagged >= goals.DECLINED * (self.flagged + self.tests)

    def verdicts(self) -> Iterator[Verdict]:
        yield goals.answered_verdict(self.flagged / max(self.flagged + self.tests, 1))
        if not self.declined:
            yield goals.level_verdict(self.rejected, self.tests)

    def text(self) -> str:
        share = self.rejected / max(self.tests, 1)
        return (
            f"{self.kind} | {self.model} | n={self.n} eps={self.epsilon:g} | rejects {share:.3f} "
            f"of {self.tests}"
            f" at 5 %, flagged {self.flagged}"
        )

    def json(self) -> dict[str, Any]:
        return {"type": "level", **asdict(self)}


TYPES: dict[str, type[FitLine] | type[RankLine] | type[LevelLine]] = {
    "fit": FitLine,
    "rank": RankLine,
    "level": LevelLine,
}


def from_json(stored: dict[str, Any]) -> Line:
    """A line that was written before."""
    fields = {k: v for k, v in stored.items() if k != "type"}
    if "counts" in fields:
        fields["counts"] = IntervalCounts(**fields["counts"])
    return TYPES[stored["type"]](**fields)
