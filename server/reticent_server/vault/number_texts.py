# SPDX-License-Identifier: Apache-2.0
"""Texts of numbers as a file writes them, with its decimal sign and its sign between thousands →
plain ones.
"""

import pyarrow as pa
import pyarrow.compute as pc

from reticent_server.domain.reading import DECIMALS, NumberStyle


def are_numbers(cells: pa.Array, style: NumberStyle) -> pa.Array:
    """(cells,) which texts are numbers of that style."""
    return pc.match_substring_regex(cells, style.pattern)


def plain_numbers(cells: pa.Array, style: NumberStyle) -> pa.Array:
    """The texts with a decimal point and nothing between thousands; null for what is no number of
    that style.
    """
    numbers = pc.if_else(are_numbers(cells, style), cells, None)
    if style.groups:
        numbers = pc.replace_substring_regex(numbers, style.groups, "")
    if style.decimal != "point":
        numbers = pc.replace_substring_regex(numbers, DECIMALS[style.decimal], ".")
    return numbers
