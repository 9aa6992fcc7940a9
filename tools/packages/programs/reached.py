# SPDX-License-Identifier: Apache-2.0
"""reached.py URL…: each address answers with a page."""

import sys
from urllib.request import urlopen

for url in sys.argv[1:]:
    with urlopen(url, timeout=60) as reply:
        assert reply.read(), url  # another status than 200 raises
