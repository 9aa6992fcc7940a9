# SPDX-License-Identifier: Apache-2.0
"""Differences in differences with several dates of treatment."""
