# SPDX-License-Identifier: Apache-2.0
"""What is said in a session, to be compared with what is said in the same session about other
rows.
"""

import re
from dataclasses import dataclass, field

import httpx

from reticent_server.pipeline.services import Services
from support.attacks.planted_session import metrics

_ID = re.compile(r"rel_[A-Za-z0-9_-]+|[0-9a-f]{12,}")
_VARYING = {"reticent_reply_seconds_bucket", "reticent_reply_seconds_sum"}
"""Of a process, whose replies take as long as they take: the deadlines that hide it are compared by
themselves.
"""


@dataclass
class Transcript:
    """Everything that was said, with drawn ids by the order in which they appear."""

    said: list[str] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)

    def hear(self, text: str) -> None:
        self.said.append(_ID.sub(lambda m: self.ids.setdefault(m[0], f"<{len(self.ids)}>"), text))

    def reply(self, reply: httpx.Response) -> httpx.Response:
        headers = sorted((k, v) for k, v in reply.headers.items() if k != "date")
        self.hear(f"{reply.status_code} {reply.text} {headers}")
        return reply


def counted(services: Services, name: str) -> dict[str, float]:
    """The curator's metrics, but for how long replies took. name: of the curator who asks."""
    lines = [line for line in metrics(services, name).splitlines() if not line.startswith("#")]
    pairs = (line.rpartition(" ") for line in lines)
    return {k: float(v) for k, _, v in pairs if k.partition("{")[0] not in _VARYING}
