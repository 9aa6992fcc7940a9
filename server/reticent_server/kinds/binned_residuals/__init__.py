# SPDX-License-Identifier: Apache-2.0
"""Residuals of a released fit, by bins of its fitted values."""
