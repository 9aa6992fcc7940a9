# SPDX-License-Identifier: Apache-2.0
"""What a plan says of a fit before it is asked: how much noise, which intervals, and what can be
done about it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.precision import ForecastPrecision
from reticent_server.fitting.advice import advice
from reticent_server.fitting.expected_intervals import NO_INTERVALS
from reticent_server.fitting.forecast import Forecast
from reticent_server.fitting.trust import BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class FitForecast:
    """fit: what it will be worth; intervals: (q,) which coefficients are expected to have one;
    notes: of the model and of the profile.
    """

    design: Design
    facts: DatasetFacts
    fit: Forecast
    intervals: BoolArray
    notes: list[str]

    @property
    def precision(self) -> ForecastPrecision:
        """Of the coefficients; infinite where no interval is expected."""
        privacy = np.where(self.intervals, self.fit.privacy, np.inf).tolist()
        return ForecastPrecision(
            tuple(self.design.names), tuple(privacy), tuple(self.fit.sampling.tolist())
        )

    def shown(self, planned: Mapping[str, Any]) -> Mapping[str, Any]:
        """What is `planned`, and for each coefficient the expected privacy over its sampling
        standard error (null where no interval is expected), with what to do about it.
        """
        fit, expected = self.fit, self.intervals
        hidden = bool(fit.estimable.any()) and not expected.any()
        pairs = zip(fit.ratios.tolist(), expected.tolist(), strict=True)
        return {
            **planned,
            "relative_error": fit.error,
            "terms": list(self.design.names),
            "privacy_to_sampling": [ratio if ok else None for ratio, ok in pairs],
            "notes": [
                *self.notes,
                *([NO_INTERVALS] if hidden else []),
                *advice(fit, self.design, self.facts),
            ],
        }
