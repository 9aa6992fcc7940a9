# SPDX-License-Identifier: Apache-2.0
"""Noisy counts of cells that together hold a public number of records.

Counts t = h + z with Σh = n and independent noise of variance σ² in each of K cells. Of all
estimates of h that are linear in t and unbiased, the one of the least variance is the projection on
Σ = n,

    h̃ = t − (Σt − n)/K,        covariance σ²(I − 11ᵀ/K),

so that the standard error of one count falls by the factor √(1 − 1/K), and that of their sum is 0.
Post-processing.
"""

from math import sqrt

import numpy as np

from reticent_server.domain.steps import Released


def with_total(counts: Released, total: float) -> Released:
    """The counts (K,) given that they add up to `total`; sd: of one of them."""
    cells = counts.values.size
    off = (float(counts.values.sum()) - total) / cells
    return Released(np.asarray(counts.values - off), counts.sd * sqrt(1 - 1 / cells))
