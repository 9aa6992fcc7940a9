# SPDX-License-Identifier: Apache-2.0
"""`by`: one answer for each level of a column, all of them from one charge.

Groups are disjoint and public, and a record contributes e_g ⊗ v: v in the place of its own group g,
nothing in the others'. Replacing a record changes the sum by e_g ⊗ v − e_g′ ⊗ v′, of squared norm
‖v − v′‖² inside a group and ‖v‖² + ‖v′‖² between two, so by at most 2C where ‖v‖ ≤ C, as without
groups: every group is answered at the whole ε (parallel composition, a record that moves to another
group included). A unit with m rows, which may lie in several groups, moves the sum by m times that
(triangle inequality). What each kind's v is, and its Δ, is said in the room of the kind.

Small groups have the same noise as large ones, and so wide intervals; none is left out, since that
would tell of it.

Source: McSherry (2009), Theorem 4, for replacement. Attack: tests/privacy/test_by_privacy.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.plan_of_plans import PlannedOn
from reticent_server.domain.precision import ForecastPrecision
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.group_fits import GroupFits, GroupRegression, Strata, plan_group_fits
from reticent_server.fitting.influence.whole import no_calibration
from reticent_server.fitting.regression_model import RegressionModel
from reticent_server.fitting.results import Estimate
from reticent_server.formula import mask_design, parse_formula
from reticent_server.kinds.shared.columns import declared
from reticent_server.kinds.shared.groups import MAX_GROUPS, Groups
from reticent_server.kinds.shared.tables import level_axis


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEstimate(Estimate):
    """The estimate of one group; n: the records of the whole data set."""

    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEstimates:
    """One estimate a level of the column `by`, in the order of its declared levels. The errors of
    two groups are independent."""

    by: str
    groups: list[GroupEstimate]
    n: int


@dataclass(frozen=True, slots=True)
class ByPlan(PlannedOn):
    """One answer for each level of a column.

    plan: about all groups; its result is the members (G,) of each group's answer, but `level`.
    each: the class of one answer; reply: of all of them, with the members by, groups and n. n: the
    records of the whole data set.
    """

    plan: Planned
    column: str
    levels: tuple[str, ...]
    n: int
    each: Callable[..., Any]
    reply: Callable[..., Any]

    @property
    def base(self) -> Planned:
        """The plan about all groups."""
        return self.plan

    @property
    def outline(self) -> Outline:
        return self.plan.outlined

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def forecast(self) -> Mapping[str, Any]:
        return self.plan.forecast

    @property
    def precision(self) -> ForecastPrecision | None:
        return self.plan.precision

    def expected_ms(self, n: int) -> float:
        return self.plan.expected_ms(n)

    def run(self) -> Recipe:
        answers = yield from self.plan.run()
        groups = [
            self.each(**members, level=level)
            for level, members in zip(self.levels, answers, strict=True)
        ]
        return self.reply(by=self.column, groups=groups, n=self.n)


def by_plan(
    facts: DatasetFacts,
    plan: Planned,
    groups: Groups | Strata,
    each: Callable[..., Any] = GroupEstimate,
    reply: Callable[..., Any] = GroupEstimates,
) -> ByPlan:
    """The plan about all groups as one answer each."""
    return ByPlan(plan, groups.column or "", groups.levels, facts.n, each, reply)


def groups_by(facts: DatasetFacts, name: str, *used: str) -> Groups:
    """The groups of a column that is none of `used`. Raises InvalidQuery."""
    column = declared(facts, name)
    if not column.kind.is_whole:
        raise InvalidQuery("by must be a categorical, boolean or integer column.")
    if name in used:
        raise InvalidQuery(
            f"by must be another column than those that are summarised; {name} is one."
        )
    axis = level_axis(column)
    if axis.size > MAX_GROUPS:
        raise InvalidQuery(
            f"At most {MAX_GROUPS} groups are answered; {name} has {axis.size} levels."
        )
    return Groups(name, axis.stored, axis.levels)


def formula_by(
    facts: DatasetFacts, formula: str, where: str | None, by: str
) -> tuple[Design, Strata]:
    """A formula's design, which reads the groups' column as well, and the groups of its fits.
    Raises InvalidQuery."""
    design = parse_formula(formula, facts.schema, where, profile=facts.profile)
    groups = groups_by(
        facts, by, *parse_formula(formula, facts.schema, None, profile=facts.profile).columns
    )
    with_by = mask_design((*design.columns, by), facts.schema)
    read = replace(design, columns=with_by.columns, missing_columns=with_by.missing_columns)
    return read, Strata(by, groups.codes, groups.levels)


def group_mask(facts: DatasetFacts, where: str | None, by: str, *names: str) -> Design:
    """The records in use: those for which `where` holds, of a known group, and none of the columns
    missing."""
    return mask_design((*names, by), facts.schema, where)


class AsksFits(Protocol):
    """What a question about a regression says of its fit beside the model."""

    @property
    def formula(self) -> str:
        """The model, in the formulas' grammar."""

    @property
    def where(self) -> str | None:
        """Which records, None for all."""

    @property
    def mechanism(self) -> str:
        """How it is fitted, such as "newton"."""

    @property
    def calibration(self) -> str | None:
        """How noise is calibrated, where the mechanism asks for that; else None."""

    @property
    def confidence_level(self) -> float:
        """The level of the coefficients' intervals."""


def fits_by(
    facts: DatasetFacts,
    query: AsksFits,
    by: str,
    model: RegressionModel[Any],
    rho: int,
) -> ByPlan:
    """The fits of a formula's model of all groups at `rho` (RHO_UNITS). Raises InvalidQuery."""
    if query.mechanism != "newton":
        raise InvalidQuery("by is for the newton mechanism only.")
    no_calibration(query.calibration)
    design, strata = formula_by(facts, query.formula, query.where, by)
    plan = plan_group_fits(facts, design, strata, model, query.confidence_level, rho)
    return by_plan(facts, plan, strata, GroupRegression, GroupFits)
