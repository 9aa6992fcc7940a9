# SPDX-License-Identifier: Apache-2.0
"""The sum of a column."""
