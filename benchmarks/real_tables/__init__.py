# SPDX-License-Identifier: Apache-2.0
"""Ordinary models over real tables: do intervals hold their own target, and the textbook's?

`models.json` names the tables with their declared bounds, and the models; each table is a CSV file
beside it.
"""
