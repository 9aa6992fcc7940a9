# SPDX-License-Identifier: Apache-2.0
"""A known part o of a person's log hazard, as public facts have it: ln(hazard) = α_j + xᵀβ + o.

Fits are about o − m, m a public middle at which exp(o − m) is 1 on average of public rows, so that
baseline hazards are those of a usual person. Nothing here is bounded: follow-up stops at a
cumulative hazard, whatever it comes from. Only times at risk, from which a first baseline is taken,
count exp(o − m) as at most `most`.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from reticent_server.domain.design import Design
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.fitting.public.rows import PublicRows
from reticent_server.numerics.evaluate import evaluate

_FEW = 0.98
"""Quantile of exp(o − m) up to which times at risk count it in full: a larger one adds noise, a
smaller one makes the first baseline too high by what it leaves out, which the steps after it
correct."""
_MOST = 4.0  # times: by what the noise of the times at risk grows at the most


@dataclass(frozen=True, slots=True)
class PublicOffset:
    """middle: m, in logarithms; most: at least 1."""

    middle: float = 0.0
    most: float = 1.0


def public_offset(design: Design, rows: PublicRows) -> PublicOffset:
    """From public rows; of a design without an offset 0 and 1."""
    if design.offset is None:
        return PublicOffset()
    middle = float(logsumexp(rows.offset)) - float(np.log(len(rows.offset)))
    most = float(np.exp(np.quantile(rows.offset, _FEW) - middle))
    return PublicOffset(middle, min(max(most, 1.0), _MOST))


def centred(design: Design, middle: float, block: Block) -> FloatArray:
    """(rows,) o − m; zeros without an offset."""
    if design.offset is None:
        return np.zeros(block.rows)
    return evaluate(design.offset, block) - middle
