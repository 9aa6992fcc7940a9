# SPDX-License-Identifier: Apache-2.0
"""Cumulative incidences of competing causes, and Gray's test.

incidence.py  Aalen and Johansen's estimate from noisy counts, and the times lost.
gray.py       the test from the same counts.
"""
