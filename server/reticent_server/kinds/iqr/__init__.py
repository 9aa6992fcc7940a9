# SPDX-License-Identifier: Apache-2.0
"""The interquartile range of a column."""
