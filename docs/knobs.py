"""Every knob that people know from GraphRAG, under its name there, and where it is set here: for the table of docs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Knob:
    """`name` and `default`: GraphRAG's; `path`: in `QueryOptions`; `note`: how ours differs."""

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
    Knob("max_context_tokens", "batch.max_context_tokens", 12_000),
    Knob("max_data_tokens", "answer.max_data_tokens", 12_000, "what does not fit goes to further rounds (`overflow`)"),
    Knob("map_max_length", "answer.map_max_length", 1000),
    Knob("reduce_max_length", "answer.reduce_max_length", 2000),
    Knob("map max_tokens", "answer.map_max_tokens", None),
    Knob("map temperature", "answer.map_temperature", 0.0),
    Knob("reduce max_tokens", "answer.reduce_max_tokens", None),
    Knob("reduce temperature", "answer.reduce_temperature", 0.0),
    Knob("json_mode", "answer.json_mode", True),
    Knob("allow_general_knowledge", "answer.allow_general_knowledge", False, "in the reduce only"),
    Knob("response_type", "answer.response_type", "multiple paragraphs"),
    Knob("community_level", "selection.level", None),
    Knob("dynamic_community_selection", "selection.strategy", False, "`dynamic`, or our own `relevant`"),
    Knob("dynamic_search_threshold", "selection.threshold", 1),
    Knob("dynamic_search_keep_parent", "selection.keep_parent", False),
    Knob("dynamic_search_num_repeats", "selection.num_repeats", 1),
    Knob("dynamic_search_use_summary", "selection.rate_use_summary", False),
    Knob("dynamic_search_max_level", "selection.max_level", 2),
    Knob("conversation_history_max_turns", "history_turns", 5, "the question is rewritten once, to stand alone"),
    Knob("concurrent_coroutines", "concurrency", 32, "`COMMUNITREE_LLM_CONCURRENCY` limits all questions together"),
)
