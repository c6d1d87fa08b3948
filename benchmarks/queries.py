"""What the benchmarks of questions share: an index in GraphRAG's tables, a provider, and both sides' questions.

Both sides answer from the same tables: ours through a whole stack (`communitree up`, imported with `--graph`), theirs
through `graphrag.api.global_search` in a process of its own. Run as a script it is the peer's side.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import psutil

HERE = Path(__file__).parent
TESTS = HERE.parent / "tests"
# --- the provider


@dataclass(frozen=True)
class Provider:
    """A provider in a process of its own."""

    url: str
    pid: int

    def cpu(self) -> float:
        """Return its CPU seconds so far."""
        return cpu_of([psutil.Process(self.pid)])


@contextlib.contextmanager
def provider(module: str, *words: str) -> Iterator[Provider]:
    """Run a provider: a module below `tests` or `benchmarks` that prints its base URL."""
    path = os.pathsep.join([str(TESTS), str(HERE)])
    process = subprocess.Popen(
        [sys.executable, "-m", module, *words], env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        yield Provider(process.stdout.readline().strip(), process.pid)
    finally:
        process.terminate()
        process.wait(10)


def cpu_of(processes: list[psutil.Process]) -> float:
    """Return CPU seconds, user and system, of processes and of their children that have ended."""
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            t = process.cpu_times()
            total += t.user + t.system + t.children_user + t.children_system
    return total


# --- the peer's side, in a process of its own


def peer(folder: Path, url: str, jobs: list[dict[str, Any]], python: str = sys.executable) -> list[dict[str, Any]]:
    """Let GraphRAG answer; each job is `{questions, concurrent}`. `python`: an interpreter that has graphrag.

    Returns for each job: wall and CPU seconds, and of each answer its text, seconds, map batches and points.
    """
    with tempfile.TemporaryDirectory() as work:
        task = Path(work) / "task.json"
        task.write_text(json.dumps({"folder": str(folder), "url": url, "jobs": jobs, "work": work}))
        env = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
        done = subprocess.run(
            [python, __file__, "--peer", str(task)], env=env, stdout=subprocess.PIPE, check=True, text=True
        )
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def has_peer(python: str) -> bool:
    """Say whether an interpreter has graphrag."""
    return subprocess.run([python, "-c", "import graphrag"], capture_output=True, check=False).returncode == 0


def _callbacks() -> Any:
    from graphrag.callbacks.noop_query_callbacks import NoopQueryCallbacks

    return type("Seen", (_Seen, NoopQueryCallbacks), {})()


class _Seen:
    """A callback of GraphRAG's: how many batches, which points the map gave, what went into the reduce."""

    def __init__(self) -> None:
        self.batches = 0
        self.points: list[str] = []

    def on_map_response_start(self, contexts: list[str]) -> None:
        self.batches = len(contexts)

    def on_map_response_end(self, responses: list[Any]) -> None:
        self.points = [p["answer"] for r in responses if isinstance(r.response, list) for p in r.response]

    def on_context(self, context: Any) -> None:
        pass

    def on_llm_new_token(self, token: str) -> None:
        pass


async def _peer_side(task: dict[str, Any]) -> list[dict[str, Any]]:
    from graphrag import api
    from graphrag.config.models.graph_rag_config import GraphRagConfig
    from graphrag_llm.config.model_config import ModelConfig

    logging.disable(logging.WARNING)
    os.chdir(task["work"])
    model = ModelConfig(model_provider="openai", model="gpt-4.1", api_base=task["url"], api_key="sk-bench-000000")
    config = GraphRagConfig(completion_models={"default_completion_model": model})
    folder = Path(task["folder"])
    names = ("entities", "communities", "community_reports")
    tables = {name: pd.read_parquet(folder / f"{name}.parquet") for name in names}

    async def ask(question: str) -> dict[str, Any]:
        seen = _callbacks()
        begun = time.perf_counter()
        answer, _ = await api.global_search(
            config=config, entities=tables["entities"], communities=tables["communities"],
            community_reports=tables["community_reports"], community_level=None, dynamic_community_selection=False,
            response_type="Multiple Paragraphs", query=question, callbacks=[seen],
        )  # fmt: skip
        seconds = time.perf_counter() - begun
        return {"answer": answer, "seconds": seconds, "batches": seen.batches, "points": seen.points}

    await ask("Is this warm?")
    out = []
    for job in task["jobs"]:
        gate = asyncio.Semaphore(job["concurrent"])

        async def one(question: str, gate: asyncio.Semaphore = gate) -> dict[str, Any]:
            async with gate:
                return await ask(question)

        cpu, wall = time.process_time(), time.perf_counter()
        answers = await asyncio.gather(*(one(q) for q in job["questions"]))
        out.append(
            {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "answers": answers}
        )  # fmt: skip
    return out


def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", type=Path, required=True)
    task = json.loads(parser.parse_args().peer.read_text())
    sys.stdout.write(json.dumps(asyncio.run(_peer_side(task))) + "\n")


if __name__ == "__main__":
    _main()
