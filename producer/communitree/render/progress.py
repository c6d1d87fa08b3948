"""A job's progress from its events: one line for each stage and level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic

from rich.table import Table
from rich.text import Text

from communitree.events import WARNING_EVENT, Event
from communitree.render.numbers import seconds

#: Steps of one unit that only hand on to the next stage: nothing to look at.
_QUIET = frozenset(("level", "publish", "finish", "look", "assemble", "walk"))


@dataclass
class _Stage:
    name: str
    total: int
    began: float
    quiet: bool
    done: int = 0
    failed: int = 0
    retried: int = 0
    ended: float | None = None
    told: bool = False

    def counts(self) -> str:
        text = f"{self.done:,}/{self.total:,}" if self.total > 1 or not self.ended else ""
        parts = [text] if text else []
        parts += [f"{self.failed:,} failed"] if self.failed else []
        parts += [f"{self.retried:,} tried again"] if self.retried else []
        return ", ".join(parts)


class Progress:
    """Takes events in their order; gives a table, or lines. Pure but for the clock of a running stage."""

    def __init__(self) -> None:
        self.taken = False
        self.ended = False
        self._stages: dict[str, _Stage] = {}
        self._notes: list[str] = []
        self._retries = 0
        self._offset: float | None = None

    def take(self, event: Event) -> None:
        """Take one event."""
        fields, stage = event.fields, self._stages.get(str(event.fields.get("stage", "")))
        offset = monotonic() - event.at
        self._offset = offset if self._offset is None else min(offset, self._offset)
        if event.type in {"job.started", "unit.ended"}:
            self.taken = True
        if event.type == "stage.started":
            kind, level = str(fields.get("kind") or fields["stage"]), fields.get("level")
            name = f"{kind} level {level}" if isinstance(level, int) else kind
            self._stages[str(fields["stage"])] = _Stage(name, int(fields.get("total", 1)), event.at, kind in _QUIET)
        elif event.type == "unit.ended" and stage is not None:
            stage.done += 1
            stage.failed += not fields.get("ok", True)
        elif event.type == "unit.retried" and stage is not None:
            stage.retried += 1
        elif event.type == "stage.ended" and stage is not None:
            stage.ended = event.at
            stage.done, stage.failed = int(fields.get("done", stage.done)), int(fields.get("failed", stage.failed))
        elif event.type == WARNING_EVENT:
            self._notes.append(str(fields.get("message", "")))
        elif event.type == "job.ended" and fields.get("reason"):
            self._notes.append(f"{fields.get('status', 'ended')}: {fields['reason']}")

    def new_notes(self) -> list[str]:
        """Return warnings that were not told yet."""
        notes, self._notes = self._notes, []
        return notes

    def new_lines(self) -> Iterator[str]:
        """Yield a line for each stage that has ended since the last call."""
        for stage in self._stages.values():
            if stage.ended is not None and not stage.told:
                stage.told = True
                if not stage.quiet or stage.failed:
                    counts = stage.counts()
                    yield f"{stage.name}: {counts + ', ' if counts else ''}{seconds(stage.ended - stage.began)}"

    def where(self) -> str:
        """Return where the job is now, "" when between stages."""
        running = [s for s in self._stages.values() if s.ended is None and not s.quiet]
        return "; ".join(f"{s.name}: {s.counts() if s.total > 1 else 'running'}" for s in running)

    def table(self) -> Table:
        """Return the live table: stage, how far, time."""
        table = Table.grid(padding=(0, 2))
        for stage in self._stages.values():
            if stage.quiet and not stage.failed:
                continue
            done = stage.ended is not None
            now = stage.ended if stage.ended is not None else self._now()
            mark = Text("✓", "green") if done and not stage.failed else Text("!", "yellow") if done else Text("…")
            table.add_row(
                mark, stage.name, _bar(stage), stage.counts(), Text(seconds(max(0, now - stage.began)), "dim")
            )
        return table

    def _now(self) -> float:
        """The clock of Redis, as far as the events tell."""
        return monotonic() - (self._offset or 0.0)


def _bar(stage: _Stage, width: int = 20) -> Text:
    full = round(width * min(1.0, stage.done / max(1, stage.total)))
    return Text("━" * full, "cyan") + Text("━" * (width - full), "bright_black")
