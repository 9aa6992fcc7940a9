# SPDX-License-Identifier: Apache-2.0
"""What a correlation replies."""

from dataclasses import dataclass
from typing import Protocol

from reticent_server.kinds.shared.named_tests import TestResult


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelationResult(TestResult):
    """statistic: z of no correlation. effect: the correlation. number: released number of records
    in use. warnings: of a correlation that a few records decide.
    """

    method: str
    standard_error: float
    privacy_standard_error: float
    number: float
    warnings: tuple[str, ...] = ()


class CorrelationQuestion(Protocol):
    """What a correlation asks beside its columns."""

    @property
    def alternative(self) -> str:
        """ "two-sided", "less" or "greater", of the correlation against 0."""

    @property
    def confidence_level(self) -> float:
        """The level of the correlation's interval."""
