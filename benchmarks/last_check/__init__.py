# SPDX-License-Identifier: Apache-2.0
"""Does a fit notice that it has not arrived? Its last check, on fits that fail and
on sound ones."""
