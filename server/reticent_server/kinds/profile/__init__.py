# SPDX-License-Identifier: Apache-2.0
"""The profile of a data set, which a curator publishes."""
