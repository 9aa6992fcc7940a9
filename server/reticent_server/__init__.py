# SPDX-License-Identifier: Apache-2.0
"""Reticent: a curator's query server for robust, differentially private statistics."""
