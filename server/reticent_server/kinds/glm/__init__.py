# SPDX-License-Identifier: Apache-2.0
"""Robust generalised linear models."""
