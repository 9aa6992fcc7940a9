# SPDX-License-Identifier: Apache-2.0
"""How well a score tells two groups apart: the ROC curve and diagnostic accuracy."""
