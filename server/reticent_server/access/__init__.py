# SPDX-License-Identifier: Apache-2.0
"""Who may ask: analysts, curators, their keys, and grants to data sets."""
