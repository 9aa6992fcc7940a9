# SPDX-License-Identifier: Apache-2.0
"""The laws of a response with several levels: one file each, one list."""

from collections.abc import Callable, Mapping

from reticent_server.domain.steps import FloatArray
from reticent_server.kinds.glm.categories.law import CategoryLaw
from reticent_server.kinds.glm.categories.multinomial import Multinomial
from reticent_server.kinds.glm.categories.ordinal import ordinal

LAWS: Mapping[str, Callable[[FloatArray], CategoryLaw]] = {
    "multinomial": lambda shares: Multinomial(len(shares)),
    "ordinal": ordinal,
}
"""By name: the law of levels with the public shares (K,)."""
