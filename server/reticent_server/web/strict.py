# SPDX-License-Identifier: Apache-2.0
"""What the bodies of requests are made of."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=128)]
Text = Annotated[str, Field(min_length=1, max_length=100_000)]


class Body(BaseModel):
    """No field that is not declared. Its fields' types say that they are not coerced."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Strict(Body):
    """No coercion (a string is no number, a boolean neither), no field that is not declared."""

    model_config = ConfigDict(strict=True)
