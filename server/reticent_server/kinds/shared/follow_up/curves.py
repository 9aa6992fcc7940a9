# SPDX-License-Identifier: Apache-2.0
"""What plans of curves say of one noisy table of follow-up: its cost, and the time of what is made
of it.
"""

from reticent_server.domain.plan import Outline
from reticent_server.domain.steps import RunningCounts
from reticent_server.kinds.shared.follow_up.question import FollowUp

PRODUCTS_A_MS = 100_000
"""Of a covariance, planned; measured 300,000."""


def curves_outline(asked: FollowUp, part: RunningCounts, *, lines: int, curves_ms: int) -> Outline:
    """The outline of curves on a whole grid, which `part` counts. lines: of a group that are in
    each of its covariances, squared. curves_ms: planned milliseconds of all but the covariances."""
    products = asked.size * lines * asked.intervals**3
    return Outline(
        columns=asked.design.columns,
        rho=part.rho,
        mechanism="discrete Gaussian running counts (square-root factorisation)",
        reference="Fichtenberger, Henzinger & Upadhyay (2023); Canonne, Kamath & Steinke (2020)",
        column_ms=curves_ms + 2 * products // PRODUCTS_A_MS,
        gaussian_counts=(),
    )
