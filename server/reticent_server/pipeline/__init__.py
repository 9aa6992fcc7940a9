# SPDX-License-Identifier: Apache-2.0
"""The way of a request: authorise → plan → reserve → execute → settle."""
