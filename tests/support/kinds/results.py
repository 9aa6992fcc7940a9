"""What a driven recipe returned, as a reply holds it."""

from typing import Any, get_args

from reticent_server.domain.results import result_json
from reticent_server.kinds import KINDS

RESULTS = tuple({each for kind in KINDS for each in (get_args(kind.result) or (kind.result,))})


def replied(value: Any) -> Any:
    """A kind's result as JSON-able values; anything else (a fit of one step, None) as it is."""
    return result_json(value) if isinstance(value, RESULTS) else value
