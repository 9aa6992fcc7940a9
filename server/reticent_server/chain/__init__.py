# SPDX-License-Identifier: Apache-2.0
"""The hash chain: one line of entries for every charge, every budget and every administrative
act."""
