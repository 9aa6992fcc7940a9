# SPDX-License-Identifier: Apache-2.0
"""Noisy tables of cliques of columns, of which clients make synthetic records."""
