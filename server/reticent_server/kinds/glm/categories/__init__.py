# SPDX-License-Identifier: Apache-2.0
"""Models of a response with several levels: multinomial and ordinal logits."""
