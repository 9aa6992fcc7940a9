# SPDX-License-Identifier: Apache-2.0
"""with_export.py: what reticent-server[word] adds to the formats of the workbench."""

from reticent_server.workbench.exports import formats

assert "word" in formats()
