# SPDX-License-Identifier: Apache-2.0
"""The questions that the gauntlet asks of a table: each takes samples and gives one line an ε."""

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from benchmarks.gauntlet.frame import Frame
from benchmarks.gauntlet.lines import FitLine, LevelLine, Line, RankLine
from benchmarks.gauntlet.replies import estimates, forecast_ratios
from benchmarks.gauntlet.summary import fit_line, gathered
from benchmarks.gauntlet.targets import (
    LEAST_WHOLE,
    Solve,
    WholeTableTarget,
    almost_noise_free,
    noise_free,
)
from reticent_server.kinds.hypothesis_test.query import HypothesisTest
from reticent_server.kinds.mean.kind import Mean
from reticent_server.kinds.quantiles.kind import Quantiles

TESTS_A_FIT = 5  # samples of a test for each of a fit: a level takes more than a coverage
NULLS = ("null", "null3")  # columns that have nothing to do with any other

_NAME, _COMPARISON = re.compile(r"[A-Za-z_]\w*"), re.compile(r"(\w+) (>=|>|==) (.+)")
_OPERATIONS = {">=": np.greater_equal, ">": np.greater, "==": np.equal}


class GauntletQuestion(Protocol):
    """name, kind: of its lines; table: the name of its whole table; epsilons: those it is asked
    at.
    """

    name: str
    table: str
    epsilons: tuple[float, ...]

    @property
    def kind(self) -> str: ...
    def lines(self, whole: Frame, epsilons: Sequence[float], reps: int) -> list[Line]: ...


@dataclass(frozen=True, slots=True)
class QuestionFields:
    """What all questions have. n: records of a sample, None for as many as the table has."""

    name: str
    table: str
    n: int | None
    epsilons: tuple[float, ...]
    query: Any

    @property
    def kind(self) -> str:
        """The query's kind, and its family or test where it has one."""
        more = (getattr(self.query, name, None) for name in ("family", "test"))
        return ":".join([self.query.kind, *(text for text in more if text)])

    def needed(self, whole: Frame) -> Frame:
        """The columns that the query names."""
        texts = (getattr(self.query, k, None) or "" for k in ("formula", "column", "where"))
        return whole.of({name for text in texts for name in _NAME.findall(text)})

    def size(self, whole: Frame) -> int:
        return self.n or whole.n

    def seeds(self, reps: int) -> list[np.random.Generator]:
        """One generator a sample, the same whatever else is asked."""
        own = zlib.crc32(self.name.encode())
        return [np.random.default_rng((own, k)) for k in range(reps)]


@dataclass(frozen=True, slots=True)
class Fit(QuestionFields):
    """A model with coefficients. solve: its equations without noise; None where they have no code.
    collinear: its terms depend on each other linearly."""

    solve: Solve | None = None
    collinear: bool = False

    def target(self, whole: Frame) -> WholeTableTarget:
        table = whole.repeated(LEAST_WHOLE)
        try:
            if self.solve is None:
                return almost_noise_free(table, self.query, self.size(whole))
            return noise_free(table, self.query, self.size(whole), self.solve)
        finally:
            table.close()

    def lines(self, whole: Frame, epsilons: Sequence[float], reps: int) -> list[Line]:
        frame = self.needed(whole)
        target, n = self.target(frame), self.size(frame)
        replies: dict[float, list[Any]] = {e: [] for e in epsilons}
        forecasts: dict[float, list[Any]] = {e: [] for e in epsilons}
        for rng in self.seeds(reps):
            table = frame.sample(rng, n)
            for epsilon in epsilons:
                plan = table.plan(self.query, epsilon)
                result = table.reply(plan)
                if result is not None:
                    found = estimates(result)
                    replies[epsilon].append(found)
                    said = forecast_ratios(plan.planned.forecast, len(found.terms))
                    forecasts[epsilon].append(said)
            table.close()
        return [
            self._line(epsilon, n, replies[epsilon], forecasts[epsilon], target, reps)
            for epsilon in epsilons
            if replies[epsilon]
        ]

    def _line(
        self,
        epsilon: float,
        n: int,
        replies: Any,
        forecasts: Any,
        target: WholeTableTarget,
        reps: int,
    ) -> FitLine:
        samples = gathered(replies, forecasts, target)
        silent = 1 - len(replies) / reps
        return fit_line(self.name, self.kind, n, epsilon, samples, silent, collinear=self.collinear)


@dataclass(frozen=True, slots=True)
class MeanFit(Fit):
    """A mean, whose value on the whole table is its target."""

    query: Mean

    def target(self, whole: Frame) -> WholeTableTarget:
        x = in_use(whole, self.query.column, self.query.where)
        error = x.std() / np.sqrt(self.size(whole) * len(x) / whole.n)
        return WholeTableTarget(np.array([x.mean()]), np.array([error]))


@dataclass(frozen=True, slots=True)
class Ranks(QuestionFields):
    """Quantiles, judged by how many records lie between them and the sample's own."""

    query: Quantiles

    def lines(self, whole: Frame, epsilons: Sequence[float], reps: int) -> list[Line]:
        frame, found = self.needed(whole), {e: [] for e in epsilons}
        n = self.size(frame)
        for rng in self.seeds(reps):
            index = rng.choice(frame.n, n)
            table = frame.rows(index)
            x = in_use(frame, self.query.column, self.query.where, index)
            for epsilon in epsilons:
                plan = table.plan(self.query, epsilon)
                forecast = plan.planned.forecast["rank_error"] * n
                found[epsilon].append((forecast, rank_errors(table.release(plan), x)))
            table.close()
        return [self._line(epsilon, n, found[epsilon]) for epsilon in epsilons]

    def _line(self, epsilon: float, n: int, found: list[Any]) -> RankLine:
        errors = np.array([error for _, error in found])
        return RankLine(
            model=self.name,
            kind=self.kind,
            n=n,
            epsilon=epsilon,
            error=float(np.sqrt(np.mean(errors**2))),
            forecast=float(np.median([forecast for forecast, _ in found])),
            worst=float(errors.max()),
        )


@dataclass(frozen=True, slots=True)
class Level(QuestionFields):
    """A test of columns that have nothing to do with any other: they are permuted anew in each
    sample.
    """

    query: HypothesisTest

    def lines(self, whole: Frame, epsilons: Sequence[float], reps: int) -> list[Line]:
        frame, n = self.needed(whole), self.n or whole.n
        nulls = tuple(name for name in NULLS if name in frame.columns)
        found: dict[float, list[float | None]] = {e: [] for e in epsilons}
        for rng in self.seeds(TESTS_A_FIT * reps):
            table = frame.shuffled(rng, nulls).sample(rng, n)
            for epsilon in epsilons:
                reply = table.release(table.plan(self.query, epsilon))
                found[epsilon].append(reply["p_value"])
            table.close()
        return [self._line(epsilon, n, found[epsilon]) for epsilon in epsilons]

    def _line(self, epsilon: float, n: int, found: list[float | None]) -> LevelLine:
        given = [p for p in found if p is not None]
        rejected = sum(p < 0.05 for p in given)
        return LevelLine(
            self.name, self.kind, n, epsilon, rejected, len(given), len(found) - len(given)
        )


def in_use(
    frame: Frame, column: str, where: str | None, index: np.ndarray | None = None
) -> np.ndarray:
    """The cells of a column that are not missing and for which `where` holds: one comparison."""
    rows = np.arange(frame.n) if index is None else index
    x = frame.arrays[column][rows]
    used = np.isfinite(x)
    if where is not None:
        match = _COMPARISON.fullmatch(where)
        assert match is not None, where
        used &= _OPERATIONS[match[2]](frame.arrays[match[1]][rows], float(match[3]))
    return x[used]


def rank_errors(result: dict[str, Any], x: np.ndarray) -> list[float]:
    """Records between each released quantile and where it should be; a tie is anywhere in its
    records.
    """
    pairs = zip(result["probabilities"], result["values"], strict=True)
    return [max(0.0, p - np.mean(x <= v), np.mean(x < v) - p) * len(x) for p, v in pairs]
