# SPDX-License-Identifier: Apache-2.0
"""The question of a test of linear hypotheses."""

from dataclasses import dataclass, field, replace
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
    loss: Annotated[
        Literal["huber", "squared"],
        Field(
            description="Of the linear regression, as its own: squared is least squares (wald and "
            "lr only)."
        ),
    ] = "huber"
    kind: Literal["hypothesis_test"] = field(default="hypothesis_test", kw_only=True)

    def other_target(self) -> "HypothesisTest | None":
        """Least squares beside Huber's, of a linear regression; a score test has no other."""
        if self.family not in {None, "gaussian"} or self.test == "score":
            return None
        return replace(self, loss="huber" if self.loss == "squared" else "squared", tuning=None)
