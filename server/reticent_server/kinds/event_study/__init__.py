# SPDX-License-Identifier: Apache-2.0
"""Event studies."""
