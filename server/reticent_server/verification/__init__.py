# SPDX-License-Identifier: Apache-2.0
"""The public page where anybody checks that a release is one of this server's, word for word."""
