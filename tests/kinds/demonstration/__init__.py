# SPDX-License-Identifier: Apache-2.0
"""A room of its own for a kind that no other file of the server, of the client or of the docs
knows.
"""
