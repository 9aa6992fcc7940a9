# SPDX-License-Identifier: Apache-2.0
"""How large a formula or a predicate may be."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that keep parsing and planning cheap for any text.

    max_length: characters. max_depth: nested brackets, functions and `not`s. max_columns: columns
    of the design, the intercept included. max_factors: factors of one interaction. max_comparisons:
    in one predicate. max_expansion: products of terms formed while multiplying out `*` and `:`.
    max_levels: of a factor before levels are joined. max_order: of a polynomial. max_knots: of one
    spline. max_features: of a person, in one query.
    """

    max_length: int = 8_000
    max_depth: int = 20
    max_columns: int = 256
    max_factors: int = 6
    max_comparisons: int = 128
    max_expansion: int = 1_024
    max_levels: int = 1_024
    max_order: int = 10
    max_knots: int = 20
    max_features: int = 64
