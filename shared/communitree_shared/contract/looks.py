"""Looks by the stream of requests: what each takes. A program's mistake is found before a worker begins."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from communitree_shared.contract.options import QueryOptions, fault
from communitree_shared.errors import BadInput

#: The look at all corpora: it has no corpus of its own.
CORPORA = "corpora"

#: What a look finds stands in its end's entry up to so many bytes (the scripts have the same number); else its object's
#: key alone. Every consumer of the stream reads it, so it is small.
INLINE = 4096


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NoArguments(_Arguments):
    """Of `tree` and `corpora`."""


class ReportArguments(_Arguments):
    """Of `report`."""

    community: int = Field(ge=0)


class SourceArguments(_Arguments):
    """Of `source`."""

    text_unit: str = Field(min_length=1, max_length=200, description="its id, a beginning of it, or its number")


class ExportArguments(_Arguments):
    """Of `export`."""

    own_columns: bool = Field(True, description="also the columns that GraphRAG does not have")


class PlanArguments(_Arguments):
    """Of `plan`: what a question would read and cost."""

    question: str = Field(min_length=1, max_length=20_000)
    options: dict[str, Any] = Field({}, description="QueryOptions")
    which: Literal["one", "all"] = Field("one", description="the plan of the chosen selection, or of all of them")


ARGUMENTS: dict[str, type[_Arguments]] = {
    "tree": NoArguments, "report": ReportArguments, "source": SourceArguments, "export": ExportArguments,
    "plan": PlanArguments, CORPORA: NoArguments,
}  # fmt: skip


def arguments(op: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a look, complete.

    Raises:
        BadInput: there is no such look, or one of its arguments is wrong.
    """
    kind = ARGUMENTS.get(op)
    if kind is None:
        raise BadInput("The request does not say at what to look.", hint=f"`op` is one of {', '.join(ARGUMENTS)}.")
    try:
        found = kind.model_validate(given)
        if isinstance(found, PlanArguments):
            QueryOptions.model_validate(found.options)
    except ValidationError as error:
        model = QueryOptions if error.title == QueryOptions.__name__ else kind
        path, wrong = fault(model, error)
        where = ".".join(("options", *path) if model is QueryOptions else path)
        raise BadInput(f"The arguments of the look {op!r} are not valid: {where}: {wrong}.") from None
    return found.model_dump()


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the arguments of each look."""
    shapes = {op: kind.model_json_schema() for op, kind in ARGUMENTS.items()}
    return {"title": "LookArguments", "type": "object", "properties": shapes}
