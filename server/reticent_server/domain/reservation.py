# SPDX-License-Identifier: Apache-2.0
"""What the ledger hands out for a charge."""

from dataclasses import dataclass

from reticent_server.domain.cost import PrivacyCost


@dataclass(frozen=True, slots=True)
class Reservation:
    """A committed debit: the permission to compute a plan once. Made by the ledger only."""

    id: str
    version_id: str
    cost: PrivacyCost
    created_at: str
    lease: str = ""
