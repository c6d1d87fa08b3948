"""Write the parts of the documentation that the code knows better: `make docs`; with --check only say what is stale.

A generated part of a page stands between `<!-- generated: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Before anything that asks for the width of a terminal is imported.
os.environ.update(COLUMNS="132", TERMINAL_WIDTH="132", NO_COLOR="1", TERM="dumb")
for name in [n for n in os.environ if n.startswith("COMMUNITREE_") or n in {"FORCE_COLOR", "GITHUB_ACTIONS"}]:
    del os.environ[name]

from pydantic import BaseModel, SecretStr  # noqa: E402
from settings_texts import TEXTS  # noqa: E402

from communitree_shared.contract import (  # noqa: E402
    ask_defaults,
    index_plan,
    job_views,
    looks,
    messages,
    results,
)
from communitree_shared.contract.options import QueryOptions, field_of, limits  # noqa: E402
from communitree_shared.contract.strategies import STRATEGIES  # noqa: E402
from communitree_shared.settings import Settings  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
PART = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
PAGES = ("README.md", "ARCHITECTURE.md", "docs/messages.md", "docs/operations.md", "docs/commands.md",
         "docs/how-to/questions.md", "docs/how-to/models.md")  # fmt: skip

RESULTS: dict[str, type[BaseModel]] = {
    "answer": results.Answer,
    "plan": results.Plan,
    "index-result": results.IndexResult,
    "index-plan": index_plan.IndexPlan,
    "tree": results.Tree,
    "job": job_views.JobView,
    "job-row": job_views.JobRow,
}


def schemas() -> dict[str, str]:
    """Return path → text of every published JSON Schema."""
    found: dict[str, Any] = {**messages.schemas(), "look-arguments": looks.schema()}
    found |= {name: model.model_json_schema(mode="serialization") for name, model in RESULTS.items()}
    return {
        f"docs/schemas/{name}.json": json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema},
                                                indent=2, ensure_ascii=False) + "\n"
        for name, schema in found.items()
    }  # fmt: skip


def settings_table() -> str:
    """Return a row for each setting."""
    lines = ["| variable | default | |", "| --- | --- | --- |"]
    for field, info in Settings.model_fields.items():
        default = info.default
        if field in {"home", "cpu_slots"}:
            shown = {"home": "`$XDG_DATA_HOME/communitree`", "cpu_slots": ""}[field]
        elif default in (None, "") or isinstance(default, SecretStr):
            shown = ""
        else:
            shown = f"`{json.dumps(default) if not isinstance(default, str) else default}`"
        lines.append(f"| `COMMUNITREE_{field.upper()}` | {shown} | {TEXTS.get(field) or info.description or ''} |")
    return "\n".join(lines)


def habit_table() -> str:
    """Return a row for each group of endpoints' habits that come to the same in every stage (docs/habits.json)."""
    told: dict[str, dict[str, str]] = json.loads((ROOT / "docs/habits.json").read_text(encoding="utf-8"))
    rows: dict[tuple[str, ...], list[str]] = {}
    for habit in next(iter(told.values())):
        rows.setdefault(tuple(cells[habit] for cells in told.values()), []).append(f"`{habit}`")
    lines = [f"| habit | {' | '.join(told)} |", f"| --- |{' --- |' * len(told)}"]
    lines += [f"| {', '.join(habits)} | {' | '.join(cells)} |" for cells, habits in rows.items()]
    return "\n".join(lines)


def knob_table() -> str:
    """Return a row for each option of a question, those that GraphRAG has first."""
    from knobs import KNOBS

    from communitree.cli.ask import FLAGS

    theirs = {tuple(knob.path.split(".")): knob for knob in KNOBS}
    every = [*theirs, *(path for path in FLAGS.spelled if path not in theirs)]
    lines = [
        "| GraphRAG | flag of `ask` | setting | `QueryOptions` | default | |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for path in every:
        field, knob = field_of(QueryOptions, path), theirs.get(path)
        assert field is not None, path
        default = field.get_default(call_default_factory=True)
        shown = (
            "" if default in (None, "", [], {}) else f"`{default if isinstance(default, str) else json.dumps(default)}`"
        )
        words = [FLAGS.sentence(path).rstrip("."), knob.note if knob else "", limits(field)]
        cells = (
            f"`{knob.name}`" if knob else "",
            f"`{FLAGS.spelled[path]}`",
            f"`{ask_defaults.PREFIX}{path[-1].upper()}`" if path[-1] in ask_defaults.NAMES else "",
            f"`{'.'.join(path)}`",
            shown,
            "; ".join(word for word in words if word),
        )
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)


def selection_table() -> str:
    """Return a row for each selection: its flag, and the options that it keeps to."""
    from communitree.cli import selections

    flags = {flag.split()[0]: flag for spelled in selections.spelled().values() for flag in spelled.split(", ")}
    lines = ["| `strategy` | flag of `ask` | options of its own | |", "| --- | --- | --- | --- |"]
    for name, declared in STRATEGIES.items():
        flag = f"`{flags[declared.flag]}`".replace("|", chr(92) + "|") if declared.flag else ""
        own = ", ".join(f"`{option}`" for option in declared.options)
        lines.append(f"| `{name}` | {flag} | {own} | {declared.help or declared.otherwise} |")
    return "\n".join(lines)


def queue_table() -> str:
    """Return a row for each queue: who serves it, and the tasks in it."""
    lines = ["| queue | worker | tasks |", "| --- | --- | --- |"]
    for queue in messages.QUEUES:
        kind = "`models`" if queue in messages.MODEL_QUEUES else "`cpu`"
        if queue in messages.LOCAL_QUEUES:
            twin = queue.removesuffix(".local")
            lines.append(f"| `{queue}` | {kind} | the tasks of `{twin}`, by the built-in model |")
            continue
        tasks = [
            f"`{t.removeprefix('communitree.')}` {messages.DOES[t]}"
            for t in messages.TASKS
            if messages.TASKS[t] == queue
        ]
        lines.append(f"| `{queue}` | {kind} | {'; '.join(tasks)} |")
    return "\n".join(lines)


def task_table() -> str:
    """Return a row for each task."""
    lines = ["| task | queue | does |", "| --- | --- | --- |"]
    for task in messages.TASKS:
        does = messages.DOES[task]
        local = f", `{messages.TASKS[task]}.local`" if messages.TASKS[task] in messages.MODEL_QUEUES else ""
        lines.append(f"| `{task}` | `{messages.TASKS[task]}`{local} | {does} |")
    return "\n".join(lines)


def schema_list() -> str:
    """Return a link to each schema."""
    return "\n".join(f"- [`{Path(path).stem}`]({path.removeprefix('docs/')})" for path in schemas())


def help_of(*words: str) -> str:
    """Return the real command's help."""
    from communitree.cli.app import build

    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        build()([*words, "--help"], prog_name="communitree")
    lines = [line.rstrip() for line in out.getvalue().strip("\n").splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(lines[1:] if lines and not lines[0] else lines)


def command_names() -> list[str]:
    """Return the commands in the order of the help."""
    import typer.main

    from communitree.cli.app import build

    group: Any = typer.main.get_command(build())
    return [name for name, command in group.commands.items() if not command.hidden]


def commands_overview() -> str:
    """Return the main help as a code block."""
    return f"```\n{help_of()}\n```"


def commands_reference() -> str:
    """Return the help of each command."""
    return "\n\n".join(f"## communitree {name}\n\n```\n{help_of(name)}\n```" for name in command_names())


PARTS: dict[str, Callable[[], str]] = {
    "settings": settings_table,
    "knobs": knob_table,
    "selections": selection_table,
    "queues": queue_table,
    "tasks": task_table,
    "schemas": schema_list,
    "commands": commands_overview,
    "reference": commands_reference,
    "habits": habit_table,
}


def pages() -> Iterator[tuple[Path, str]]:
    """Yield each generated file and the text it should have."""
    for path, text in schemas().items():
        yield ROOT / path, text
    for page in PAGES:
        old = (ROOT / page).read_text(encoding="utf-8")
        yield ROOT / page, PART.sub(lambda m: f"{m[1]}{PARTS[m[2]]()}\n{m[3]}", old)


def main(arguments: list[str]) -> int:
    stale = [(path, text) for path, text in pages() if not path.exists() or path.read_text(encoding="utf-8") != text]
    surplus = set((ROOT / "docs/schemas").glob("*.json")) - {ROOT / path for path in schemas()}
    if "--check" in arguments:
        for path in [*(path for path, _ in stale), *surplus]:
            print(f"{path.relative_to(ROOT)} is stale: run `make docs`")
        return 1 if stale or surplus else 0
    for path, text in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    for path in surplus:
        path.unlink()
        print(f"removed {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
