# SPDX-License-Identifier: Apache-2.0
"""What a t test replies."""

from dataclasses import dataclass

from reticent_server.fitting.results import Interval
from reticent_server.kinds.shared.group_means import GroupMean
from reticent_server.kinds.shared.named_tests import TestResult


@dataclass(frozen=True, slots=True, kw_only=True)
class TTestResult(TestResult):
    """effect: the first mean minus the second, or minus `popmean`, in the units of the data.

    range: what values were clipped to. groups: one for each group. standard_error: of the effect;
    privacy_standard_error: its part from privacy noise.
    """

    standard_error: float
    privacy_standard_error: float
    range: Interval
    groups: tuple[GroupMean, ...]
