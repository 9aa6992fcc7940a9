# SPDX-License-Identifier: Apache-2.0
"""The median of a column."""
