# SPDX-License-Identifier: Apache-2.0
"""Columns that are made of a person's own rows: means, and deviations from them.

    used_t        the place holds a row, `where` holds, no cell is missing, and every term is finite
    mean_t        = Σ_s used_s x_s / T,        T = Σ_s used_s, over the m places of the person
    deviation_t   = x_t − mean_t
    quasi_t       = (x_t − θ mean_t)/√(1 − ρ),     θ = 1 − √((1 − ρ)/(1 − ρ + Tρ)),

rows (up to a factor, of x_t = 1 the intercept's) of R^(−1/2)x with R the correlations 1 and ρ of T
rows, so that least squares of them is generalised least squares.

A person with fewer than `least` rows in use has none: a deviation of a single row is 0 and says
nothing.

Privacy. Every value is a function of the m places of one person and of public values: sums are
added place by place, whatever the block is. So a person that is replaced by another, of whatever
number of rows, changes the values of that person's m places and no others, and every sum over rows
or persons keeps the bound that it has without this. Rows out of use are 0 everywhere. Means over
*other* persons' rows (of a period) would not be such functions: there are none here.

Source: the within transformation, e.g. Wooldridge (2010), Econometric Analysis of Cross Section and
Panel Data, §10.5; means of a person as regressors: Mundlak (1978).
"""

from dataclasses import replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.design import Design, PersonColumns
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.numerics.evaluate import evaluate_term, in_use

OUT = "\x00out"  # the name of no column: the mask of places that are not in use
# the name of no column: by what a residual is to be multiplied to have the variance of an error
STRETCH = "\x00stretch"


def prepared(design: Design, block: Block) -> Block:
    """The block with the columns that the design's terms read; itself where they are stored.

    A block of a table of persons is whole persons, of m places each (domain.steps.Block).
    """
    if design.persons is None:
        return block
    persons, columns = design.persons, dict(block.columns)
    with np.errstate(all="ignore"):
        values = [evaluate_term(made.term, block) for made in persons.made]
        others = [evaluate_term(term, block) for term in persons.checked]
        used, T = _used(persons, block, [*values, *others])
        left, unit = remainder(T, persons.correlation), sqrt(1 - persons.correlation)
        left = np.repeat(left, persons.rows)
        for made, value in zip(persons.made, values, strict=True):
            own = np.where(used, value, 0.0)
            mean = np.repeat(
                person_sums(own[None, :], persons.rows)[0] / np.maximum(T, 1), persons.rows
            )
            columns[made.name] = np.where(used, _made(made.what, own, mean, left, unit), 0.0)
    columns[STRETCH] = np.repeat(np.sqrt(T / np.maximum(T - 1, 1)), persons.rows)
    return replace(block, columns=columns, missing={**block.missing, OUT: ~used})


def _made(
    what: str, own: FloatArray, mean: FloatArray, left: FloatArray, unit: float
) -> FloatArray:
    """(rows,) by the formulas above; left: 1 − θ, unit: √(1 − ρ)."""
    match what:
        case "mean":
            return mean
        case "deviation":
            return own - mean
        case "quasi":
            return np.asarray((own - (1 - left) * mean) / unit)
        case _:
            return np.asarray(left / unit)


def remainder(T: FloatArray, correlation: float) -> FloatArray:
    """1 − θ for T rows in use."""
    return np.asarray(np.sqrt((1 - correlation) / (1 - correlation + T * correlation)))


def _used(
    persons: PersonColumns, block: Block, values: list[FloatArray]
) -> tuple[NDArray[np.bool_], FloatArray]:
    """(rows,) which are in use, and (persons,) how many of each person."""
    used = in_use(persons.written, block)
    for value in values:
        used &= np.isfinite(value)
    T = person_sums(used.astype(np.float64)[None, :], persons.rows)[0]
    enough = persons.least <= T
    return used & np.repeat(enough, persons.rows), np.where(enough, T, 0.0)


def person_sums(rows: FloatArray, m: int, weights: FloatArray | None = None) -> FloatArray:
    """(size, persons) sums over m places each, added in the order of the places whatever the block.

    weights: (rows,) by which the rows (size, rows) are multiplied; None: by 1.
    """
    total = np.zeros((len(rows), rows.shape[1] // m))
    weighed = rows if weights is None else rows * weights
    for place in range(m):
        total += weighed[:, place::m]
    return total
