# SPDX-License-Identifier: Apache-2.0
"""Counts by the values of several columns."""
