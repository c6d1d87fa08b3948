"""What stands in the streams, as Redis gives it: every value is a string.

The schemas of these entries are for programs that read the streams themselves; `Client` gives numbers and truth values.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

#: A whole number; unix seconds with three decimals; a stream's id.
_NUMBER, _SECONDS, _ID = r"^[0-9]+$", r"^[0-9]+\.[0-9]{3}$", r"^[0-9]+-[0-9]+$"


class _Entry(BaseModel):
    model_config = ConfigDict(extra="allow", json_schema_extra={"additionalProperties": {"type": "string"}})


class EventEntry(_Entry):
    """An entry of a job's events. Further fields by its type."""

    type: str = Field(min_length=1)
    seq: str = Field(pattern=_NUMBER, description="a whole number; rises by one, so that a gap shows")
    at: str = Field(pattern=_SECONDS, description="unix seconds with three decimals, by the clock of Redis")
    ok: Literal["true", "false"] | None = Field(None, description="of `unit.ended`")


class OutcomeEntry(_Entry):
    """An entry of a tenant's results: the one outcome of a request."""

    type: Literal["accepted", "rejected"]
    request: str = Field(pattern=_ID, description="the id that XADD returned")
    correlation_id: str = Field("", description="not there where the request could not be read")
    job: str = Field("", description="of `accepted`")
    code: str = Field("", description="of `rejected`, as `message` and `hint`")
    message: str = ""
    hint: str = ""


class EndEntry(_Entry):
    """An entry of a tenant's results: a job has ended."""

    job: str
    status: str
    kind: str = Field(description='"" where the ledger knows the job no longer')
    corpus: str
    correlation_id: str
    op: str = Field("", description="of a look")
    object: str = Field("", description="of a look: the key of the object that holds what it found")
    result: str = Field("", description="of a look: the same as JSON, where it is small")


class LostEntry(_Entry):
    """An entry of a tenant's results or dead letters: unread ones before it were dropped."""

    type: Literal["lost"]
    count: str = Field(pattern=_NUMBER, description="how many were dropped that a group had not acknowledged")
    until: str = Field(pattern=_ID, description="up to this id, included")
    at: str = Field(pattern=_SECONDS, description="unix seconds with three decimals, by the clock of Redis")
    groups: str = Field("", description="the groups that had not acknowledged them, with commas; none: there are none")


ENTRIES: dict[str, type[BaseModel]] = {
    "event-entry": EventEntry, "outcome-entry": OutcomeEntry, "end-entry": EndEntry, "lost-entry": LostEntry,
}  # fmt: skip
