"""Stages: sealed sets of units, and the step that follows when the last of them has arrived."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from communitree_shared.contract.messages import Message, Unit, message_id, queue_of


@dataclass(frozen=True)
class Step:
    """A stage of one unit: what runs between two wide stages. Its failure fails the job (`critical`)."""

    stage: str
    task: str
    args: dict[str, Any] = field(default_factory=dict)
    kind: str = ""
    local: bool = True
    then: Step | None = None
    critical: bool = True
    deadline: float | None = None

    def spec(self, tenant: str, job: str) -> dict[str, Any]:
        """Return what the scripts keep: the stage's record and its one message."""
        unit = Unit(id=self.stage, args=self.args)
        body = Message(
            task=self.task,
            tenant=tenant,
            job=job,
            stage=self.stage,
            id=self.stage,
            units=[unit],
            deadline=self.deadline,
        )
        spec: dict[str, Any] = {
            "stage": self.stage,
            "kind": self.kind or self.stage.split("-")[0],
            "total": 1,
            "window": 1,
            "critical": self.critical,
            "message": self.stage,
            "unit": self.stage,
            "queue": queue_of(self.task, local=self.local),
            "body": body.dumps(),
        }
        if self.then:
            spec["next"] = self.then.spec(tenant, job)
        return spec


@dataclass(frozen=True)
class Stage:
    """A wide stage: many units, some to a message, released through the job's window."""

    stage: str
    task: str
    then: Step
    kind: str = ""
    level: int | None = None
    window: int = 256
    deadline: float | None = None

    def spec(self, tenant: str, job: str, total: int) -> dict[str, Any]:
        """Return what the scripts keep of the stage itself."""
        spec: dict[str, Any] = {
            "stage": self.stage,
            "kind": self.kind or self.stage.split("-")[0],
            "total": total,
            "window": self.window,
            "critical": False,
            "next": self.then.spec(tenant, job),
        }
        if self.level is not None:
            spec["level"] = self.level
        return spec

    def messages(
        self, tenant: str, job: str, units: Iterable[Unit], *, local: bool, per_message: int = 1
    ) -> list[tuple[str, str, list[str], str]]:
        """Return (id, queue, unit ids, body) of the messages that carry these units, in order.

        A unit's id is a hash of its input: one that comes twice is done once.
        """
        made: list[tuple[str, str, list[str], str]] = []
        group: list[Unit] = []
        queue = queue_of(self.task, local=local)

        def flush() -> None:
            if not group:
                return
            identity = message_id(self.stage, group)
            body = Message(
                task=self.task, tenant=tenant, job=job, stage=self.stage, id=identity, units=list(group),
                deadline=self.deadline,
            )  # fmt: skip
            made.append((identity, queue, [u.id for u in group], body.dumps()))
            group.clear()

        for unit in {unit.id: unit for unit in units}.values():
            group.append(unit)
            if len(group) == per_message:
                flush()
        flush()
        return made


def compact(value: Any) -> str:
    """Return compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
