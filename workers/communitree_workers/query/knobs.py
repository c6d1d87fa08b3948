"""Every knob that people know from GraphRAG, under its name there, and where it is set here. One table for all docs."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from communitree_shared.options import QueryOptions


@dataclass(frozen=True)
class Knob:
    """`name` and `default`: GraphRAG's; `path`: in `QueryOptions`, '' with a `note` where it is set elsewhere."""

    name: str
    path: str
    default: object
    note: str = ""


KNOBS: tuple[Knob, ...] = (
    Knob("use_community_summary", "batch.use_community_summary", False),
    Knob("shuffle_data", "batch.shuffle_data", True),
    Knob("random_state", "batch.random_state", 86),
    Knob("min_community_rank", "selection.min_community_rank", 0),
    Knob("include_community_rank", "batch.include_community_rank", True),
    Knob("include_community_weight", "batch.include_community_weight", True),
    Knob("normalize_community_weight", "batch.normalize_community_weight", True),
    Knob("context_name", "batch.context_name", "Reports"),
    Knob("column_delimiter", "batch.column_delimiter", "|"),
    Knob(
        "max_context_tokens", "batch.max_context_tokens", 12_000, "the whole map prompt is counted, not its table alone"
    ),
    Knob("max_data_tokens", "answer.max_data_tokens", 12_000, "what does not fit goes to further rounds"),
    Knob("map_max_length", "answer.map_max_length", 1000, "words of a map reply"),
    Knob("reduce_max_length", "answer.reduce_max_length", 2000, "words of the answer"),
    Knob("map max_tokens", "answer.map_max_tokens", None),
    Knob("map temperature", "answer.map_temperature", 0.0),
    Knob("reduce max_tokens", "answer.reduce_max_tokens", None),
    Knob("reduce temperature", "answer.reduce_temperature", 0.0),
    Knob("json_mode", "answer.json_mode", True),
    Knob("allow_general_knowledge", "answer.allow_general_knowledge", False, "reduce only; marked in the text"),
    Knob("response_type", "answer.response_type", "multiple paragraphs"),
    Knob("community_level", "selection.level", None, "with the selections `frontier` and `levels`"),
    Knob("dynamic_community_selection", "selection.strategy", False, "`dynamic`, or our own `relevant`"),
    Knob("dynamic_search_threshold", "selection.threshold", 1),
    Knob("dynamic_search_keep_parent", "selection.keep_parent", False),
    Knob("dynamic_search_num_repeats", "selection.num_repeats", 1),
    Knob("dynamic_search_use_summary", "selection.rate_use_summary", False),
    Knob("dynamic_search_max_level", "selection.max_level", 2),
    Knob("conversation_history_max_turns", "history_turns", 5, "the last turns; the question is rewritten once"),
    Knob("concurrent_coroutines", "", 32, "COMMUNITREE_LLM_CONCURRENCY: shared by all workers"),
)


def option(path: str) -> FieldInfo:
    """Return the field of `QueryOptions` that a path names.

    Raises:
        KeyError: there is none.
    """
    model: type[BaseModel] = QueryOptions
    *parts, last = path.split(".")
    for part in parts:
        kind = model.model_fields[part].annotation
        if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
            raise KeyError(path)
        model = kind
    return model.model_fields[last]


def table() -> str:
    """Return the knobs as a Markdown table: GraphRAG's name, ours, the default, a note."""
    lines = ["| GraphRAG | communitree | default | note |", "| --- | --- | --- | --- |"]
    for knob in KNOBS:
        default = option(knob.path).get_default(call_default_factory=True) if knob.path else knob.default
        ours, value = f"`{knob.path}`" if knob.path else "–", str(default).replace("|", "\\|")
        lines.append(f"| `{knob.name}` | {ours} | `{value}` | {knob.note} |")
    return "\n".join(lines) + "\n"
