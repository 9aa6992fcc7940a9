# SPDX-License-Identifier: Apache-2.0
"""Inverses where a matrix does not identify everything, whatever the units."""

import numpy as np
import pytest

from reticent_server.numerics.matrices import (
    cholesky,
    eigen,
    floored,
    identified,
    powers,
    pseudo_inverse,
)
from support.seeds import seeded

UNITS = np.array([1.0, 1e6, 1e-4])


def information() -> np.ndarray:
    """Of three terms, the third being the sum of the others, in very different units."""
    rows = seeded(1).normal(size=(200, 2))
    terms = np.column_stack([rows, rows.sum(axis=1)]) * UNITS
    return np.asarray(terms.T @ terms)


def test_a_pseudo_inverse_solves_what_is_identified_in_any_units() -> None:
    matrix = information()
    inverse = pseudo_inverse(matrix)
    scale = np.outer(UNITS, UNITS)
    np.testing.assert_allclose(matrix @ inverse @ matrix / scale, matrix / scale, rtol=1e-9)
    assert np.abs(inverse * scale).max() < 1
    regular = matrix[:2, :2]
    np.testing.assert_allclose(pseudo_inverse(regular) @ regular, np.eye(2), atol=1e-7)
    assert not pseudo_inverse(np.zeros((2, 2))).any()


def test_an_entry_is_identified_where_nothing_without_information_moves_it() -> None:
    matrix = information()
    transform = np.vstack([np.eye(3), UNITS * [1, -1, 0], UNITS * [1, 1, 1]])
    assert identified(matrix, transform).tolist() == [False, False, False, True, False]
    assert identified(matrix[:2, :2], np.eye(2)).all()


@pytest.mark.parametrize("entry", [np.nan, np.inf, -np.inf, 1e308, 5e-324, 0.0])
@pytest.mark.parametrize("where", ["all", "one", "diagonal"])
def test_no_entry_makes_an_exception(entry: float, where: str) -> None:
    matrix = np.full((3, 3), entry) if where == "all" else np.eye(3)
    matrix[(0, 1) if where == "one" else (0, 0)] = entry
    found = [
        *eigen(matrix),
        *powers(matrix, (0.5, -0.5)),
        floored(matrix, 1e-3, 1e3),
        cholesky(matrix),
        pseudo_inverse(matrix),
    ]
    assert all(np.isfinite(each).all() for each in found)
    assert identified(matrix, np.eye(3)).shape == (3,)
