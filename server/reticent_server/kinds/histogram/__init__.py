# SPDX-License-Identifier: Apache-2.0
"""Counts by bin or level."""
