# SPDX-License-Identifier: Apache-2.0
"""A known part o of a person's log hazard, as public facts have it: ln(hazard) = α_j + xᵀβ + o.

Fits are about o − m, m a public middle at which exp(o − m) is 1 on average of public rows, so that
baseline hazards are those of a usual person. Nothing here is bounded: follow-up stops at a
cumulative hazard, whatever it comes from.
"""

import numpy as np
from scipy.special import logsumexp

from reticent_server.domain.design import Design
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.fitting.public.rows import PublicRows
from reticent_server.numerics.evaluate import evaluate


def public_middle(design: Design, rows: PublicRows) -> float:
    """m, in logarithms, from public rows; 0 of a design without an offset."""
    if design.offset is None:
        return 0.0
    return float(logsumexp(rows.offset)) - float(np.log(len(rows.offset)))


def centred(design: Design, middle: float, block: Block) -> FloatArray:
    """(rows,) o − m; zeros without an offset."""
    if design.offset is None:
        return np.zeros(block.rows)
    return evaluate(design.offset, block) - middle
