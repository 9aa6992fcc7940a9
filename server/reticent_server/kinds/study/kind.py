# SPDX-License-Identifier: Apache-2.0
"""The kind `study`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from annotated_types import MaxLen, MinLen
from pydantic import Field

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import OfPersons, Query
from reticent_server.errors import InvalidQuery
from reticent_server.formula import (
    parse_formula,
    parse_variables,
    person_deviations,
    with_person_means,
)
from reticent_server.formula.factor import column_levels
from reticent_server.formula.filled import columns_of, filled, missing_term
from reticent_server.formula.limits import Limits
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.fields import Formula, Level, Name, Text, Where
from reticent_server.kinds.shared.columns import declared
from reticent_server.kinds.study.centres import public_centres
from reticent_server.kinds.study.ground import StudyQuestion
from reticent_server.kinds.study.maps import RecordGroups
from reticent_server.kinds.study.plan import StudyPlan, plan_study
from reticent_server.kinds.study.result import StudyResult

MOST_TERMS = 64  # of the design, with the indicators of missing cells
MOST_COLUMNS = 256  # of all groups together: their Gram matrix is released as one

Variables = Annotated[
    tuple[Text, ...],
    MinLen(1),
    MaxLen(64),
    Field(description='Such as `["log(wage)", "schooling", "I(schooling**2)", "C(region)"]`.'),
]

Effects = Annotated[
    Literal["person"],
    OfPersons(),
    Field(
        description="person: deviations from the person's means over the rows in use, of a data "
        "set with several rows a person. Formulas then have an intercept of every person (the "
        "within estimator)."
    ),
]


@dataclass(frozen=True, slots=True)
class Study(Query):
    """Noisy second moments of variables, from which any linear analysis of them is free.

    variables: columns, functions of columns, factors, bases or interactions, as in a formula; up to
    64 columns of the design. main: one formula over them whose standard errors are to be robust to
    heteroscedasticity. by: a categorical column; every level has moments of its own, in one charge.
    missing: records with a missing cell are left out ("mask"); or, except for the first variable
    and the response of main, the cell is filled with a public value and a column missing(x) says
    where ("indicator"). effects: "person" for deviations from a person's means, where a person has
    several rows.
    """

    variables: Variables
    main: Formula | None = None
    by: Name | None = None
    where: Where = None
    missing: Literal["mask", "indicator"] = "mask"
    effects: Effects | None = None
    confidence_level: Level = 0.95
    kind: Literal["study"] = field(default="study", kw_only=True)


_NO_INTERCEPT = "Leave 0 out of main: person effects take the place of the intercept."
_BY_OF_PERSONS = (
    "A study by groups is not for persons with several rows: a person may have rows in several "
    "groups. Ask with a "
    "condition (`where`), or with by as a factor among the variables."
)

_LIMITS = Limits(
    max_columns=64
)  # a study of q columns has q²/2 noisy moments, and holds them for every analysis after it


def _plan(facts: DatasetFacts, query: Study, offer: PrivacyCost) -> StudyPlan:
    means = query.missing == "mask"
    design, variables = parse_variables(
        query.variables,
        facts.schema,
        query.where,
        limits=_LIMITS,
        person_means=means,
        profile=facts.profile,
    )
    main = None
    if query.main is not None:
        parsed = parse_formula(
            query.main, facts.schema, query.where, person_means=means, profile=facts.profile
        )
        main = (query.main, parsed)
    if query.missing == "indicator":
        design, variables, main = _filled(facts, design, variables, main)
    if query.effects:
        if main is not None and not main[1].intercept:
            raise InvalidQuery(_NO_INTERCEPT)
        design = person_deviations(design, facts.schema)
    else:
        design = with_person_means(design, facts.schema)
    if query.by is not None and facts.persons is not None:
        raise InvalidQuery(_BY_OF_PERSONS)
    groups, levels = _groups(facts, query.by, design)
    if len(design.names) * groups.count > MOST_COLUMNS:
        raise InvalidQuery(
            f"All groups together may have {MOST_COLUMNS} columns; leave out variables, or by."
        )
    with_by = _reading(design, facts, query.by)
    question = StudyQuestion(with_by, variables, groups, levels, main, query.confidence_level)
    return plan_study(facts, question, offer.rho)


def _filled(
    facts: DatasetFacts,
    design: Design,
    variables: Mapping[str, tuple[str, ...]],
    main: tuple[str, Design] | None,
) -> tuple[Design, dict[str, tuple[str, ...]], tuple[str, Design] | None]:
    """The same with missing cells filled; each variable has the indicators of its columns too."""
    terms = {term.name: term for term in design.terms}
    of = {text: columns_of(terms[name] for name in names) for text, names in variables.items()}
    response = main[1].response if main else None
    kept = {*next(iter(of.values())), *columns_of([response] if response else [])}
    centres = public_centres(facts, (*design.columns, *(main[1].columns if main else ())))
    made = filled(design, centres, kept)
    if len(made.terms) > MOST_TERMS:
        raise InvalidQuery(
            f"With their indicators the variables have more than {MOST_TERMS} columns; leave out "
            "variables."
        )
    said = {c: missing_term(c).name for c in made.filled_columns}
    own = {
        text: (*names, *(said[c] for c in of[text] if c in said))
        for text, names in variables.items()
    }
    return made, own, main and (main[0], filled(main[1], centres, kept))


def _groups(
    facts: DatasetFacts, by: str | None, design: Design
) -> tuple[RecordGroups, tuple[str, ...]]:
    if by is None:
        return RecordGroups(), ()
    column = declared(facts, by)
    if not column.kind.has_levels and not column.is_dummy:
        raise InvalidQuery("by must be a categorical or a 0/1 column.")
    if by in design.columns:
        raise InvalidQuery("Leave the column of by out of variables and where.")
    levels = column_levels(column)
    return RecordGroups(by, tuple(v.codes[0] for v in levels)), tuple(v.text for v in levels)


def _reading(design: Design, facts: DatasetFacts, by: str | None) -> Design:
    """The design with the groups' column among those that are read."""
    if by is None:
        return design
    missing = (by,) if declared(facts, by).may_be_missing else ()
    return replace(
        design,
        columns=(*design.columns, by),
        missing_columns=(*design.missing_columns, *missing),
    )


KIND = Kind(
    query=Study,
    group=QuestionGroup.MODEL,
    asks="How are several columns related, in many linear analyses for one charge?",
    plan=_plan,
    result=StudyResult,
    examples=(
        Study(("y", "x", "k")),
        Study(("y", "x", "C(g)", "I(x**2)"), main="y ~ x + C(g)"),
        Study(("y", "x"), by="g", where="k > 2"),
        Study(("y", "x", "k"), missing="indicator"),
    ),
    page="study",
)
