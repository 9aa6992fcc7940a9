# SPDX-License-Identifier: Apache-2.0
"""A linear regression, as the rooms that are made of one share it: its question, response, loss and
plan."""
