# SPDX-License-Identifier: Apache-2.0
"""How a curator's file becomes a version of a data set: for the command line and for the
console."""
