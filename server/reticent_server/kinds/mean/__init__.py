# SPDX-License-Identifier: Apache-2.0
"""The mean of a column."""
