"""Who asks."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated holder of a key."""

    id: str
    name: str
    role: Literal["analyst", "curator"]
    key_id: str = ""
