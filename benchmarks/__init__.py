# SPDX-License-Identifier: Apache-2.0
"""Speed and accuracy, against peers; each module prints one JSON line last.

Installations, tables and recipes of the tests (`tests/support`) are used here, too.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))
