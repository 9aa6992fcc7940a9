# SPDX-License-Identifier: Apache-2.0
"""What every process of this program does first, as it may hold private cells and secrets in memory."""

import ctypes
import os
import resource
import sys

_PR_SET_DUMPABLE = 4  # linux/prctl.h


def keep_to_itself() -> None:
    """No core file, no reading of its memory by other processes of its user, no file for others.

    Child processes start anew by running this, too: a program that is executed may be read again.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    os.umask(0o077)
