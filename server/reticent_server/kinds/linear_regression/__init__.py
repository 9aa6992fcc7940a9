# SPDX-License-Identifier: Apache-2.0
"""Huber–Mallows linear regression."""
