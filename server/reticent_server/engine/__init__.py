# SPDX-License-Identifier: Apache-2.0
"""Executes plans by block map-reduce; the only reader of the vault in a serving process."""
