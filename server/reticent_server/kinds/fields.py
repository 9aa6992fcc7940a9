# SPDX-License-Identifier: Apache-2.0
"""The types of questions' fields: their limits, and that nothing is coerced (a text is no number, a
boolean neither).
"""

from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le, MaxLen, MinLen
from pydantic import AllowInfNan, Field, Strict

Name = Annotated[str, MinLen(1), MaxLen(128)]
"""A column's or data set's name."""
Text = Annotated[str, MinLen(1), MaxLen(100_000)]
"""A formula, a hypothesis or a condition."""
Number = Annotated[float, Strict(), AllowInfNan(False)]
Positive = Annotated[float, Strict(), Gt(0), AllowInfNan(False)]
Whole = Annotated[int, Strict()]
Flag = Annotated[bool, Strict()]
Level = Annotated[float, Strict(), Ge(0.5), Le(0.9999), AllowInfNan(False)]
"""A confidence level; beyond .9999 a normal interval does not describe a noisy estimate's tails."""
Tuning = Annotated[float, Strict(), Ge(0.1), Le(100), AllowInfNan(False)]
"""A tuning constant in scales of the residuals: below .1 nearly every record is cut, above 100
none.
"""
PlannedTuning = Annotated[Tuning | Literal["planned"], Field(union_mode="left_to_right")]

Where = Annotated[
    Text | None, Field(description='Which records, such as `grade >= 7 and waterfront == "1"`.')
]
Formula = Annotated[Text, Field(description="Such as `y ~ x1 + C(g) + log(x2) + x1:x2`.")]
Weights = Annotated[
    Name | None,
    Field(
        description="A numeric column with declared bounds of at least 0: each record's scores "
        "are multiplied by it. The noise is that of the largest weight, so a narrow upper bound "
        "gives smaller errors."
    ),
]
By = Annotated[
    Name | None,
    Field(
        description="A categorical, boolean or integer column; one answer a level, all in one "
        "charge."
    ),
]
Cluster = Annotated[
    Name | tuple[Name, Name] | None,
    Field(
        description="A column with 10 to 512 declared levels, such as states: standard errors that "
        "hold where records of a level are correlated (cluster-robust), for a quarter of the "
        "budget; or two columns (two-way). For the Newton mechanism and tables of one row a person "
        "only."
    ),
]
Unit = Annotated[
    Name | None,
    Field(
        description="A column of a survey's primary sampling units, 10 to 512 with `strata`: the "
        "error is that of their design (with replacement), with the design effect."
    ),
]
UnitStrata = Annotated[
    Name | None,
    Field(
        description="A column of a survey's strata; units are the combinations of both. Without "
        "`cluster` records are drawn one by one in each."
    ),
]
Strata = Annotated[
    Name | None,
    Field(
        description="A column of a survey's strata, with `cluster` its primary sampling units: the "
        "combinations of both, 10 to 512, are the clusters."
    ),
]
