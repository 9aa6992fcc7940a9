# SPDX-License-Identifier: Apache-2.0
"""`by`: one answer for each level of a column, all of them from one charge.

Groups are disjoint and public, and a record contributes e_g ⊗ v: v in the place of its own group g, nothing in the others'.
Replacing a record changes the sum by e_g ⊗ v − e_g′ ⊗ v′, of squared norm ‖v − v′‖² inside a group and ‖v‖² + ‖v′‖² between
two, so by at most 2C where ‖v‖ ≤ C, as without groups: every group is answered at the whole ε (parallel composition,
a record that moves to another group included). A unit with m rows, which may lie in several groups, moves the sum by m
times that (triangle inequality). What each kind's v is, and its Δ, is said in the room of the kind.

Small groups have the same noise as large ones, and so wide intervals; none is left out, since that would tell of it.

Source: McSherry (2009), Theorem 4, for replacement. Attack: tests/privacy/test_by_privacy.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import ColumnKind
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.group_fits import Strata
from reticent_server.fitting.results import Estimate
from reticent_server.formula import mask_design, parse_formula
from reticent_server.kinds.shared.groups import MAX_GROUPS, Groups
from reticent_server.kinds.shared.tables import level_axis


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEstimate(Estimate):
    """The estimate of one group; n: the records of the whole data set."""

    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEstimates:
    """One estimate a level of the column `by`, in the order of its declared levels. The errors of two groups are independent."""

    by: str
    groups: list[GroupEstimate]
    n: int


def groups_by(facts: DatasetFacts, name: str, *used: str) -> Groups:
    """The groups of a column that is none of `used`. Raises InvalidQuery."""
    column = facts.schema.column(name)
    if column is None:
        raise InvalidQuery(f"The data set has no column {name}, which by names.")
    if column.kind not in {ColumnKind.CATEGORICAL, ColumnKind.BOOLEAN}:
        raise InvalidQuery(f"by must be a categorical or a boolean column; {name} is neither.")
    if name in used:
        raise InvalidQuery(
            f"by must be another column than those that are summarised; {name} is one."
        )
    axis = level_axis(column)
    if axis.size > MAX_GROUPS:
        raise InvalidQuery(
            f"At most {MAX_GROUPS} groups are answered; {name} has {axis.size} levels."
        )
    codes = tuple(axis.lower + k for k in range(axis.size))
    return Groups(name, codes, axis.levels)


def formula_by(
    facts: DatasetFacts, formula: str, where: str | None, by: str
) -> tuple[Design, Strata]:
    """A formula's design, which reads the groups' column as well, and the groups of its fits. Raises InvalidQuery."""
    design = parse_formula(formula, facts.schema, where, profile=facts.profile)
    groups = groups_by(
        facts, by, *parse_formula(formula, facts.schema, None, profile=facts.profile).columns
    )
    with_by = mask_design((*design.columns, by), facts.schema)
    read = replace(design, columns=with_by.columns, missing_columns=with_by.missing_columns)
    return read, Strata(by, groups.codes, groups.levels)


def group_mask(facts: DatasetFacts, where: str | None, by: str, *names: str) -> Design:
    """The records in use: those for which `where` holds, of a known group, and none of the columns missing."""
    return mask_design((*names, by), facts.schema, where)


def group_estimates(groups: Groups, by_level: Sequence[Estimate], n: int) -> GroupEstimates:
    """The estimates (G,) with the names of their groups."""
    named: list[tuple[str, Mapping[str, object]]] = [
        (level, asdict(each)) for level, each in zip(groups.levels, by_level, strict=True)
    ]
    estimates = [GroupEstimate(level=level, **fields) for level, fields in named]  # type: ignore[arg-type]
    return GroupEstimates(by=groups.column or "", groups=estimates, n=n)
