# SPDX-License-Identifier: Apache-2.0
"""The question of a test of linear hypotheses."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import MaxLen
from pydantic import Field

from reticent_server.domain.query import Query
from reticent_server.kinds.fields import Formula, Level, Text, Tuning, Where
from reticent_server.kinds.glm.query import Dispersion, Family

MAX_HYPOTHESES = 64  # as many rows as a design may have columns


@dataclass(frozen=True, slots=True)
class HypothesisTest(Query):
    """Test of linear hypotheses about a model's coefficients, the privacy noise being counted."""

    formula: Formula
    hypothesis: Annotated[
        Annotated[tuple[Text, ...], MaxLen(MAX_HYPOTHESES)] | None,
        Field(description='Such as `["x1 = 0", "x2 = x3"]`; null: a table of the terms.'),
    ] = None
    test: Literal["wald", "score", "lr"] = "wald"
    family: Annotated[
        Family | None,
        Field(description="Of a generalised linear model; null: the linear regression."),
    ] = None
    where: Where = None
    tuning: Tuning | None = None
    mechanism: Literal["newton"] = "newton"
    confidence_level: Level = 0.95
    dispersion: Dispersion = None
    kind: Literal["hypothesis_test"] = field(default="hypothesis_test", kw_only=True)
