# SPDX-License-Identifier: Apache-2.0
"""M-estimates with noise in proportion to their influence function, after a private pilot fit."""
