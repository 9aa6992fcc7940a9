# SPDX-License-Identifier: Apache-2.0
"""The declared formula of a study: its scores as a step, and its errors by record or by person."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

from reticent_server.domain.steps import FloatArray, GramSum, Released, Step, SumStep
from reticent_server.fitting.coding import TermCoding
from reticent_server.kinds.study.ground import StudyQuestion
from reticent_server.kinds.study.main import Formula, GroupFit, before_meat, main_fit, meat
from reticent_server.kinds.study.maps import ScoreLengthsMap, StudyScoresMap
from reticent_server.kinds.study.persons import (
    persons_meat,
    score_clusters,
    score_lengths,
    stretch_in,
)
from reticent_server.kinds.study.recipe import Sampled, Sampling
from reticent_server.kinds.study.result import MainFit


@dataclass(frozen=True, slots=True, eq=False)
class DeclaredFormula:
    """A formula whose scores are released after the moments. sampling: of the moments; records: the
    public number of units.
    """

    formula: Formula
    question: StudyQuestion
    sampling: Sampling
    records: int

    @property
    def _coding(self) -> TermCoding:
        return self.sampling.coding

    def fits(
        self, by_group: Sequence[Sampled], lost: Sequence[FloatArray]
    ) -> Generator[Step, tuple[Released, ...], list[MainFit]]:
        """The fit of each group. lost: (q,) of each, as of leaning.NarrowMoments.tails."""
        formula, coding, sampling = self.formula, self._coding, self.sampling
        fitted = [before_meat(formula, sampled.moments, sampled.narrow) for sampled in by_group]
        if sampling.person_rows > 1:
            return [(yield from self._of_persons(by_group[0], fitted[0], lost[0]))]
        groups = self.question.groups
        part = formula.part(groups.count, sampling.shares.scores, sampling.unit_rows)
        frames = tuple(sampled.frame for sampled in by_group)
        rows = StudyScoresMap(
            coding, groups, frames, tuple(f.scores for f in fitted), formula.limit
        )
        (released,) = yield SumStep("scores", (part,), rows)
        names, level = self.question.design.names, self.question.level
        return [
            main_fit(
                replace(f, bared=formula.bared(names, lost[g])),
                formula,
                meat(formula, released, g, f, formula.limit**2),
                level,
                sampling.n,
            )
            for g, f in enumerate(fitted)
        ]

    def _of_persons(
        self, sampled: Sampled, fitted: GroupFit, lost: FloatArray
    ) -> Generator[Step, tuple[Released, ...], MainFit]:
        """The declared formula with errors by person (persons)."""
        formula, coding, m = self.formula, self._coding, self.sampling.person_rows
        lengths = score_lengths(formula, m)
        scores = StudyScoresMap(
            coding, self.question.groups, (sampled.frame,), (fitted.scores,), 1.0
        )
        part = lengths.part(self.sampling.shares.score_lengths, m)
        (counts,) = yield SumStep("score lengths", (part,), ScoreLengthsMap(scores, lengths))
        clusters = score_clusters(lengths, counts)
        gram = GramSum(len(formula.X), 1.0, self.sampling.shares.scores, 1, person_rows=m)
        (released,) = yield SumStep("scores", (gram,), replace(scores, limit=clusters.clip))
        middle, freedom = persons_meat(formula, released, fitted, clusters)
        bared = formula.bared(self.question.design.names, lost)
        fitted = replace(
            fitted,
            bared=bared,
            freedom=freedom,
            stretch=stretch_in(sampled, deviations=self.question.design.deviations),
        )
        return main_fit(fitted, formula, middle, self.question.level, self.records)
