# SPDX-License-Identifier: Apache-2.0
"""From a study's releases to its reply: moments in the units of the terms, what clipping has moved,
and what a reader is told.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting import trust
from reticent_server.fitting.coding import TermCoding
from reticent_server.fitting.heavy_terms import skewness
from reticent_server.fitting.own_profile import NO_PROFILE
from reticent_server.fitting.trust.thresholds import CLIPPING_TOLD
from reticent_server.kinds.study.ground import StudyGround, StudyQuestion
from reticent_server.kinds.study.persons import design_effect, stretch_in
from reticent_server.kinds.study.recipe import Sampled, Sampling
from reticent_server.kinds.study.result import (
    Clipped,
    GroupResult,
    MainFit,
    Narrow,
    Noise,
    StudyResult,
)


@dataclass(frozen=True, slots=True, eq=False)
class StudyReply:
    """records: the public number of units; shares: of ρ, as shown; known: whether a profile covers
    the columns.
    """

    question: StudyQuestion
    ground: StudyGround
    sampling: Sampling
    records: int
    shares: Mapping[str, float]
    known: bool

    def lost(self, by_group: Sequence[Sampled]) -> list[FloatArray]:
        """(q,) of each group the share of a column's mean square in a doubling of the radius
        (leaning.NarrowMoments.tails).
        """
        m, inner = self.sampling.person_rows, self.sampling.inner
        reach, far = m * self.ground.reach, skewness(self.ground.coordinates)
        skewed = trust.skewed(far) & self.known
        return [
            sampled.narrow.tails(
                sampled.moments.sums,
                sampled.moments.sd * np.diag(sampled.moments.overlap),
                reach / sampled.radius.squared,
                sampled.radius.squared / inner,
                skewed,
                *self._usual(sampled, far, sampled.radius.squared / inner),
            )
            for sampled in by_group
        ]

    def _usual(self, sampled: Sampled, far: FloatArray, widening: float) -> tuple[FloatArray, ...]:
        """Of persons what columns without a tail have between the radii. far: (q,) their skewness;
        nothing is known of it without a profile.
        """
        if sampled.persons is None:
            return ()
        known = far if self.known else np.full(len(far), np.inf)
        moments = sampled.moments
        return (sampled.narrow.usual(moments.sums, moments.overlap, known, widening),)

    def result(
        self,
        by_group: Sequence[Sampled],
        fits: Sequence[MainFit | None],
        lost: Sequence[FloatArray],
    ) -> StudyResult:
        """fits: of the declared formula, of each group; lost: of each, as of `lost`."""
        coding = self.ground.coding
        groups = [
            replace(
                _group(self.records, coding, sampled, fit, self._effect(sampled)),
                lost=shares.tolist(),
            )
            for sampled, fit, shares in zip(by_group, fits, lost, strict=True)
        ]
        least = min(sampled.radius.squared for sampled in by_group)
        said = [*self.ground.heavy(least), *_beyond(by_group, coding.size)]
        result = self._result(groups, said)
        return result if self.sampling.person_rows == 1 else self._with_persons(result, by_group[0])

    def _stretch(self, sampled: Sampled) -> float:
        return stretch_in(sampled, deviations=self.question.design.deviations)

    def _effect(self, sampled: Sampled) -> float:
        """Of the design, on the sampling variances of formulas that were not declared."""
        return float(design_effect(self.sampling.person_rows, self._stretch(sampled)))

    def _with_persons(self, result: StudyResult, sampled: Sampled) -> StudyResult:
        deviations = self.question.design.deviations
        return replace(
            result,
            persons=sampled.persons,
            persons_standard_error=sampled.persons_sd,
            design_effect=self._effect(sampled),
            effects="person" if deviations else None,
            stretch=self._stretch(sampled) if deviations else None,
        )

    def _result(self, groups: Sequence[GroupResult], said: list[str]) -> StudyResult:
        question, design, coding = self.question, self.question.design, self.ground.coding
        common = StudyResult(
            terms=list(design.names),
            variables={text: list(names) for text, names in question.variables.items()},
            centres=coding.centres.tolist(),
            scales=coding.scales.tolist(),
            dummies=[False, *(term.dummy for term in design.terms)],
            n=self.records,
            shares=dict(self.shares),
            warnings=[*([] if self.known else [NO_PROFILE]), *said],
        )
        if question.groups.column is not None:
            return replace(common, groups=dict(zip(question.levels, groups, strict=True)))
        (only,) = groups
        return replace(
            common,
            moments=only.moments,
            noise=only.noise,
            narrow=only.narrow,
            clipped=only.clipped,
            radius=only.radius,
            lost=only.lost,
            main=only.main,
        )


def _beyond(groups: Sequence[Sampled], q: int) -> list[str]:
    """What to say where the released histogram shows tails that matter beyond a radius."""
    excess = max(sampled.radius.excess / sampled.records for sampled in groups)
    moved = max(sampled.radius.typical(q, sampled.records) for sampled in groups)
    said = (
        f"Heavy tails: about {excess / (excess + q):.0%} of the records' variation lies beyond "
        "the radius, which may move "
        f"coefficients by {moved:.1f} of their sampling errors (typically; single ones by "
        "several times that) from least "
        "squares of all records. The profile shows which columns have such tails."
    )
    return [said] if moved >= CLIPPING_TOLD.value else []


def _group(
    n: int, coding: TermCoding, sampled: Sampled, fit: MainFit | None, effect: float
) -> GroupResult:
    """A group's moments in the units of the terms: z = Dz̃, D = diag(b) + a eᵀ. effect: of the
    design, on sampling variances.
    """
    D = np.diag(coding.scales)
    D[1:, 0] = coding.centres[1:]
    moments, narrow = sampled.moments, sampled.narrow
    weight, sd = float(moments.sums[0, 0]), moments.sd * float(moments.overlap[0, 0])
    return GroupResult(
        moments=_symmetric(D @ moments.sums @ D.T / n).tolist(),
        noise=Noise(sd=moments.sd / n, root=(moments.root @ D.T).tolist()),
        narrow=Narrow(
            moments=_symmetric(D @ narrow.sums @ D.T / n).tolist(),
            noise=Noise(sd=narrow.sd / n, root=(narrow.root @ D.T).tolist()),
            ratio=narrow.ratio,
            typical=narrow.typical / sqrt(effect),
        ),
        clipped=Clipped(
            share=1 - weight / sampled.records,
            standard_error=sqrt(sd**2 + sampled.records_sd**2) / sampled.records,
            excess=sampled.radius.excess / sampled.records,
        ),
        radius=sampled.radius.squared,
        lost=[],
        main=fit,
    )


def _symmetric(matrix: FloatArray) -> FloatArray:
    return np.asarray((matrix + matrix.T) / 2)
