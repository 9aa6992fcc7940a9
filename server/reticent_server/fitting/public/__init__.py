# SPDX-License-Identifier: Apache-2.0
"""What a fit knows before any release: public rows, their coordinates and locations, and what a
model expects of them.
"""
