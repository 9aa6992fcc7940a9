# SPDX-License-Identifier: Apache-2.0
"""Models in the shapes that other packages have given them, asked of a data set."""
