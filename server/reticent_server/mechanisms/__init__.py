# SPDX-License-Identifier: Apache-2.0
"""The release primitives: the only doors out of the vault, each with its cost and its proof."""
