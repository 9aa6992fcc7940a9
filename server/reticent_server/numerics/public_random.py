# SPDX-License-Identifier: Apache-2.0
"""Public randomness: reproducible from a public name; for post-processing of released values only.

Never a source of privacy noise: whoever knows the name knows every draw.
"""

from hashlib import sha256

import numpy as np

PublicGenerator = np.random.Generator


def public_generator(*names: str) -> PublicGenerator:
    """A Philox generator seeded by public text, e.g. a plan's canonical description."""
    digest = sha256("\x1f".join(names).encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "big")))
