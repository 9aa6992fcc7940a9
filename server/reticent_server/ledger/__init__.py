# SPDX-License-Identifier: Apache-2.0
"""Accounts, reservations, and the hash-chained entries that every answer is charged to."""
