# SPDX-License-Identifier: Apache-2.0
"""Location and scale of a column by Huber's Proposal 2."""
