# SPDX-License-Identifier: Apache-2.0
"""The projection-depth median of several columns."""
