# SPDX-License-Identifier: Apache-2.0
"""Tokens of forms: each form of the console can be sent once, in whatever process it arrives."""

from sqlalchemy import Engine, delete, insert
from sqlalchemy.exc import IntegrityError

from reticent_server.access.tables import form_tokens
from reticent_server.database import writing
from reticent_server.domain.clock import Clock


class FormTokens:
    """Remembers which tokens were used, until they would have ended by themselves."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock

    def use(self, token_id: str, seconds: int) -> bool:
        """Whether it was not used before; of many at once, one is told so.

        seconds: after which the token is none any more, so that nobody needs to remember it.
        """
        now_ms = int(self._clock.now().timestamp() * 1000)
        values = {"id": token_id, "until_ms": now_ms + 1000 * seconds}
        try:
            with writing(self._engine) as connection:
                connection.execute(delete(form_tokens).where(form_tokens.c.until_ms <= now_ms))
                connection.execute(insert(form_tokens).values(values))
        except IntegrityError:
            return False
        return True
