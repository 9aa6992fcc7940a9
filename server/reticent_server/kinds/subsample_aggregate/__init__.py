# SPDX-License-Identifier: Apache-2.0
"""Models fitted to secret random blocks, and averaged."""
