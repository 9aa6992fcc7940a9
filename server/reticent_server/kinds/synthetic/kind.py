# SPDX-License-Identifier: Apache-2.0
"""The kind `synthetic`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import Field

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.fields import Name, Where, Whole
from reticent_server.kinds.synthetic.plan import (
    MAX_TABLES,
    SyntheticPlan,
    SyntheticResult,
    plan_synthetic,
)

MAX_COLUMNS = 16  # of which every pair is a table: 120
MAX_CLIQUE = 6  # columns: of more, a table of people has mostly empty cells
MAX_BINS = 64  # of one column of numbers: such a column and two levels still are few cells

Clique = Annotated[tuple[Name, ...], MinLen(1), MaxLen(MAX_CLIQUE)]


@dataclass(frozen=True, slots=True)
class Synthetic(Query):
    """Noisy tables of sets of columns (cliques), of which synthetic records are made, with
    intervals for what lies inside of one clique.
    """

    columns: Annotated[tuple[Name, ...], MinLen(2), MaxLen(MAX_COLUMNS)]
    cliques: Annotated[
        Annotated[tuple[Clique, ...], MinLen(1), MaxLen(MAX_TABLES)] | None,
        Field(
            description="Sets of columns that are counted together, which your analyses need; "
            "every pair without it. A column in none is counted alone."
        ),
    ] = None
    bins: Annotated[
        Whole,
        Ge(2),
        Le(MAX_BINS),
        Field(
            description="At most so many bins of a column of numbers, between the quantiles of the "
            "profile."
        ),
    ] = 8
    where: Where = None
    kind: Literal["synthetic"] = field(default="synthetic", kw_only=True)


def _plan(facts: DatasetFacts, query: Synthetic, offer: PrivacyCost) -> SyntheticPlan:
    return plan_synthetic(facts, query.columns, query.cliques, query.bins, query.where, offer.rho)


KIND = Kind(
    query=Synthetic,
    group=QuestionGroup.TABLES,
    asks="Can I have synthetic records to practise on, with free tables and fits beside them?",
    plan=_plan,
    result=SyntheticResult,
    examples=(
        Synthetic(("g", "b", "k")),
        Synthetic(("y", "g", "b", "k"), (("y", "g", "b"),), 3, "x > 0"),
    ),
    page="synthetic",
)
