# SPDX-License-Identifier: Apache-2.0
"""The response of a model of levels: a categorical column, or one of a few whole numbers."""

from reticent_server.domain.design import ColumnValue, Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.errors import InvalidQuery
from reticent_server.formula import parse_formula
from reticent_server.kinds.shared.columns import declared
from reticent_server.kinds.shared.tables import Axis, level_axis

LEAST_LEVELS = 3
MOST_LEVELS = 10
"""K: a level of a tenth of the records still has 50 at n = 500; with more, intercepts are all that
noise leaves."""
MOST_PARAMETERS = 60
"""D: an information of so many has 1,830 entries, and a block of records 120 MB of them."""
_LEVELS = (
    "The response of this family must be a categorical column, or an integer column of whole "
    f"numbers, with 3 to {MOST_LEVELS} "
    "levels; for two levels ask for the binomial family."
)
_UNIT = (
    "The multinomial and ordinal families are proved for tables whose protected unit has exactly "
    "one row; here it may have none, or more."
)


def level_design(facts: DatasetFacts, formula: str, where: str | None) -> tuple[Design, Axis]:
    """The design, whose response is the code of a level, and the levels. Raises InvalidFormula or
    InvalidQuery."""
    if facts.schema.unit.many_rows:
        raise InvalidQuery(_UNIT)
    design = parse_formula(formula, facts.schema, where, levels=True, profile=facts.profile)
    response = design.response.factors if design.response else ()
    if len(response) != 1 or not isinstance(response[0], ColumnValue):
        raise InvalidQuery(_LEVELS)
    column = declared(facts, response[0].column)
    if not column.kind.is_whole or not LEAST_LEVELS <= level_axis(column).size <= MOST_LEVELS:
        raise InvalidQuery(_LEVELS)
    if not design.intercept or not design.terms:
        raise InvalidQuery(
            "This family needs the intercept and at least one term: leave 0 and -1 out, and name "
            "a term after '~'."
        )
    return design, level_axis(column)
