"""Settings of a corpus: what its jobs were given by name is kept in the manifest, and later jobs start from it.

Only what was given is kept, not defaults. Choices about one job alone (its budget, its limit, what kind of source it
reads) are never kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from communitree_shared.contract.options import IndexOptions

Nested = dict[str, Any]

#: Choices about one job, by path; a section's name stands for all of it.
OF_ONE_JOB = frozenset(
    (
        *("graph", "plan_only", "budget_usd", "budget_tokens", "reset_settings", "publish_anyway", "rewrite_reports"),
        *("read.limit", "read.strict", "cluster.recluster"),
    )
)

_TEXT, _EXTRACTION, _SUMMARIES, _TREE, _REPORTS = (
    "text units",
    "extraction",
    "summaries of long descriptions",
    "the tree",
    "reports",
)
#: What a changed setting makes anew, by path or section; the tables and reports that come out the same are found again.
_REDONE: dict[str, tuple[str, ...]] = {
    "read": (_TEXT, _EXTRACTION, _TREE, _REPORTS),
    "extract": (_EXTRACTION, _TREE, _REPORTS),
    "extract.max_description_tokens": (_SUMMARIES, _REPORTS),
    "extract.shard_units": (),
    "cluster": (_TREE, _REPORTS),
    "cluster.spread_above": (),
    "report": (_REPORTS,),
    "prompts": (_EXTRACTION, _TREE, _REPORTS),
    "prompts.describe": (_SUMMARIES, _REPORTS),
    "prompts.report": (_REPORTS,),
    "models.extract": (_EXTRACTION, _TREE, _REPORTS),
    "models.report": (_REPORTS,),
    "max_failed": (),
}


def given(options: IndexOptions) -> Nested:
    """Return what was set by name, as nested JSON: the defaults are not in it."""
    return options.model_dump(exclude_unset=True)


def settings_of(manifest: Mapping[str, Any] | None) -> Nested:
    """Return the settings a version was made with; {} for none, and for versions that kept none."""
    return dict((manifest or {}).get("settings", {}))


def merged(stored: Nested, new: Nested) -> Nested:
    """Return stored settings with new ones over them, field by field; a list is one value."""
    out = dict(stored)
    for name, value in new.items():
        both = isinstance(value, dict) and isinstance(out.get(name), dict)
        out[name] = merged(out[name], value) if both else value
    return out


def kept(settings: Nested) -> Nested:
    """Return what is stored of a job's settings: all but the choices about one job."""
    return {
        name: value
        for name, value in ((n, _without(n, v) if isinstance(v, dict) else v) for n, v in settings.items())
        if name not in OF_ONE_JOB and value != {}
    }


def effective(manifest: Mapping[str, Any] | None, options: IndexOptions) -> tuple[IndexOptions, Nested]:
    """Return the options that a job of this corpus runs with, and the settings that its version will keep."""
    stored = {} if options.reset_settings else settings_of(manifest)
    both = merged(stored, given(options))
    return IndexOptions.stored(both), kept(both)


def changes(
    manifest: Mapping[str, Any] | None, options: IndexOptions, models: Mapping[str, str] | None = None
) -> list[str]:
    """Return a line for each setting that differs from the published version's, and what it makes anew.

    `models`: stage → model of the new job, where it is known.
    """
    if not manifest:
        return []
    before = _flat(IndexOptions.stored(manifest.get("options", {})).model_dump())
    after = _flat(options.model_dump())
    known = manifest.get("extract", {}).get("models", {})
    for stage, model in (models or {}).items():
        if stage in known:
            before[f"models.{stage}"], after[f"models.{stage}"] = known[stage], model
    lines = []
    for path in {**before, **after}:
        if path in OF_ONE_JOB or before.get(path) == after.get(path):
            continue
        redone = _REDONE.get(path, _REDONE.get(path.partition(".")[0], ()))
        what = f"{_joined(redone)} are made anew" if redone else "nothing is made anew"
        lines.append(f"{_name(path)} {_shown(path, before.get(path))} → {_shown(path, after.get(path))}: {what}")
    return lines


def _without(section: str, values: Nested) -> Nested:
    return {name: value for name, value in values.items() if f"{section}.{name}" not in OF_ONE_JOB}


def _flat(nested: Nested, prefix: str = "") -> Nested:
    out: Nested = {}
    for name, value in nested.items():
        if isinstance(value, dict):
            out |= _flat(value, f"{prefix}{name}.")
        else:
            out[prefix + name] = value
    return out


def _name(path: str) -> str:
    section, _, field = path.partition(".")
    words = {"prompts": f"prompt {field}", "models": f"model of {field}", "report": f"report {field}"}
    return words.get(section, field or section)


def _shown(path: str, value: Any) -> str:
    if path.startswith("prompts."):
        return "built-in" if value is None else f"your own ({len(value):,} characters)"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "unset" if value in (None, "") else str(value)


def _joined(words: tuple[str, ...]) -> str:
    return " and ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)
