# SPDX-License-Identifier: Apache-2.0
"""Quantiles of a column."""
