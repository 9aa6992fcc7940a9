# SPDX-License-Identifier: Apache-2.0
"""What an installation can say of its guarantee to somebody who was not there when it was built.

The questions that a reviewer asks, with the answers of this software and of this installation; a
search for the two farthest units of every kind's examples, replayed on the versions that are
installed here; all of it as one signed document and as a page. Nothing here is imported by a
process that serves, and no private cell is read: the search runs on the kinds' example table.
"""
