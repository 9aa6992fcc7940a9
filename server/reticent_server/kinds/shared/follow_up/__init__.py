# SPDX-License-Identifier: Apache-2.0
"""Times to an event: what questions about them share.

question.py  which columns, intervals and groups; what a record's cell is.
table.py     the released counts of the cells, with the covariance of their noise.
"""
