"""A job's progress from its events: one line for each stage and level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Any

from rich.table import Table

from communitree.events import LOST_EVENT, WARNING_EVENT, Event
from communitree.render.numbers import seconds
from communitree.render.text import Text

#: Steps of one unit that only hand on to the next stage: nothing to look at.
_QUIET = frozenset(("level", "publish", "finish", "look", "assemble", "walk"))


@dataclass
class _Stage:
    name: str
    total: int
    began: float
    quiet: bool
    level: int | None = None
    done: int = 0
    failed: int = 0
    retried: int = 0
    reused: int = 0
    tokens: int = 0
    ended: float | None = None
    told: bool = False

    def counts(self) -> str:
        parts = [f"{self.done:,}/{self.total:,}"] if self.total > 1 or self.ended is None else []
        for number, words in (
            (self.reused, "reused"),
            (self.failed, "failed"),
            (self.retried, "tried again"),
            (self.tokens, "tokens"),
        ):
            parts += [f"{number:,} {words}"] if number else []
        return ", ".join(parts)

    def left(self, now: float) -> str:
        """How long a running stage will still take at its pace, "" while too few of its units have ended."""
        if self.ended is not None or not 5 <= self.done < self.total:
            return ""
        return f"about {seconds((now - self.began) / self.done * (self.total - self.done))} left"


class Progress:
    """Takes events in their order; gives a table, or lines. Pure but for the clock of a running stage.

    `with_reason`: why the job ended is a note; an answer says it itself.
    """

    def __init__(self, *, with_reason: bool = True) -> None:
        self._with_reason = with_reason
        self.taken = False
        self.ended = False
        self._stages: dict[str, _Stage] = {}
        self._notes: list[str] = []
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
            deep = level if isinstance(level, int) else None
            name = kind if deep is None else f"{kind} level {deep}"
            total = int(fields.get("total", 1))
            self._stages[str(fields["stage"])] = _Stage(name, total, event.at, kind in _QUIET, deep)
        elif event.type == "unit.ended" and stage is not None:
            stage.done += 1
            stage.failed += not fields.get("ok", True)
            stage.tokens += int(fields.get("tokens", 0)) if stage.total > 1 else 0
            self._taken_over(stage, fields)
        elif event.type == "unit.retried" and stage is not None:
            stage.retried += 1
        elif event.type == "stage.ended" and stage is not None:
            stage.ended = event.at
            stage.done, stage.failed = int(fields.get("done", stage.done)), int(fields.get("failed", stage.failed))
        elif event.type == WARNING_EVENT:
            self._notes.append(str(fields.get("message", "")))
        elif event.type == LOST_EVENT:
            self._notes.append(f"{fields['count']:,} events are missing: more came than are kept")
        elif event.type == "job.ended" and fields.get("reason") and self._with_reason:
            self._notes.append(f"{fields.get('status', 'ended')}: {fields['reason']}")

    def _taken_over(self, stage: _Stage, fields: dict[str, Any]) -> None:
        """Count what an earlier version had already; for a level of reports its preparing step says so."""
        level, reused = fields.get("level"), int(fields.get("reused", 0)) + int(fields.get("cached", 0))
        where = next((s for s in self._stages.values() if stage.quiet and s.level == level is not None), stage)
        where.reused += reused

    def new_notes(self) -> list[str]:
        """Return warnings that were not told yet."""
        notes, self._notes = self._notes, []
        return notes

    def new_lines(self) -> Iterator[str]:
        """Yield a line for each stage that has ended since the last call, in the order in which they began.

        A step that hands on to a quick stage may end after it: then both are told together.
        """
        for stage in self._stages.values():
            if stage.ended is None and not stage.quiet and not self.ended:
                return
            if stage.ended is not None and not stage.told:
                stage.told = True
                if not stage.quiet or stage.failed:
                    counts = stage.counts()
                    yield f"{stage.name}: {counts + ', ' if counts else ''}{seconds(stage.ended - stage.began)}"

    def where(self) -> str:
        """Return where the job is now, "" when between stages."""
        running = [s for s in self._stages.values() if s.ended is None and not s.quiet]
        now = self._now()
        told = ((s, ", ".join(filter(None, (s.counts(), s.left(now))))) for s in running)
        return "; ".join(f"{stage.name}: {text if stage.total > 1 else 'running'}" for stage, text in told)

    def table(self) -> Table:
        """Return the live table: stage, how far, time."""
        table = Table.grid(padding=(0, 2))
        for stage in self._stages.values():
            if stage.quiet and not stage.failed:
                continue
            done = stage.ended is not None
            now = stage.ended if stage.ended is not None else self._now()
            counts = ", ".join(filter(None, (stage.counts(), stage.left(now))))
            mark = Text("✓", "green") if done and not stage.failed else Text("!", "yellow") if done else Text("…")
            table.add_row(mark, stage.name, _bar(stage), counts, Text(seconds(max(0, now - stage.began)), "dim"))
        return table

    def _now(self) -> float:
        """The clock of Redis, as far as the events tell."""
        return monotonic() - (self._offset or 0.0)


def _bar(stage: _Stage, width: int = 20) -> Text:
    full = round(width * min(1.0, stage.done / max(1, stage.total)))
    return Text("━" * full, "cyan") + Text("━" * (width - full), "bright_black")
