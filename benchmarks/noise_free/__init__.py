# SPDX-License-Identifier: Apache-2.0
"""Robust fits without noise: what tests and benchmarks hold released ones against. No wheel has
them.
"""
