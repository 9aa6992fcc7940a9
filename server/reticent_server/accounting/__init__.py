# SPDX-License-Identifier: Apache-2.0
"""Pure functions on exact integers: conversions between (ε, δ) and zCDP."""
