# SPDX-License-Identifier: Apache-2.0
"""Huber's location by the exponential mechanism."""
