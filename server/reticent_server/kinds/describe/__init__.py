# SPDX-License-Identifier: Apache-2.0
"""Table 1 and histograms: every column, by group, in one charge."""
