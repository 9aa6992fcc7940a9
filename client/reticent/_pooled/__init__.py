# SPDX-License-Identifier: Apache-2.0
"""Studies of several curators, pooled by the analyst: no site sees more than its own data."""
