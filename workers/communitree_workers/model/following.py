"""Who follows a reply while it streams is told its text as it will be kept."""

from __future__ import annotations

from communitree_workers.model.chat import ChatRequest
from communitree_workers.model.replies.thinking import Ear
from communitree_workers.model.replies.tidying import MAY_BE_WRAPPED


class Follower:
    """Tells a request's `on_token` the pieces of its reply, without thinking.

    Held back to the end is what may stand in a fence or an object, and all of it where `unopened` says that thinking
    comes without its opening mark. A text that proves to be another one is told again, after `on_restart`.
    """

    def __init__(self, request: ChatRequest, *, unopened: bool = False) -> None:
        self._token, self._again = request.on_token, request.on_restart
        self._unopened = unopened
        self.json = request.wants_json
        self._told: list[str] = []
        self._held = ""

    def hear(self, ear: Ear, piece: str) -> None:
        """Let an ear hear a piece, and tell what it gives out."""
        said = ear.hear(piece)
        if ear.restarted:
            self.restart()
        if self._token is None or not said:
            return
        self._held += said
        if self._told or (not (self._unopened and not ear.thought) and self._held[0] not in MAY_BE_WRAPPED):
            self._tell()

    def restart(self) -> None:
        """What was told is no part of the reply."""
        self._held = ""
        if self._told:
            self._told.clear()
            if self._again is not None:
                self._again()

    def close(self, text: str) -> None:
        """Tell what is missing of the text as it is kept."""
        if self._token is None:
            return
        told = "".join(self._told)
        if not text.startswith(told):
            self.restart()
            told = ""
        self._held = text[len(told) :]
        if self._held:
            self._tell()

    def _tell(self) -> None:
        self._told.append(self._held)
        if self._token is not None:
            self._token(self._held)
        self._held = ""
