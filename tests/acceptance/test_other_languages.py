"""A program that knows Redis, S3 and the documentation alone: it indexes, looks and asks by the stream."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from communitree.client import Client
from support.fleet import until
from support.house import ROOT
from support.stack import Stack

CORPUS = "年报 2025"
FOLDER = "default/corpora/_e5_b9_b4_e6_8a_a5_202025"  # docs/messages.md, names in keys


class Program:
    """What it does: XADD, XREADGROUP, XACK, PUT and GET."""

    def __init__(self, stack: Stack, client: Client) -> None:
        self.stack, self.redis, self.store = stack, client._redis, client._store
        self.redis.xgroup_create("communitree:results:default", "program", id="0", mkstream=True)
        self.entries: list[dict[str, str]] = []

    def put(self, folder: str, data: bytes) -> dict[str, Any]:
        sha256 = hashlib.sha256(data).hexdigest()
        self.store.put(f"{FOLDER}/{folder}/{sha256}", data)
        return {"sha256": sha256, "size": len(data)}

    def ask(self, request: dict[str, Any]) -> dict[str, str]:
        """Add a request; return its outcome where it is rejected, else the end of its job."""
        mine = f"mine-{len(self.entries)}"
        request = {**request, "correlation_id": mine}
        self.redis.xadd("communitree:requests:default", {"request": json.dumps(request)})

        def ended() -> list[dict[str, str]]:
            found: Any = self.redis.xreadgroup(
                "program", "me", {"communitree:results:default": ">"}, count=100, block=100
            )
            for entry, fields in found[0][1] if found else []:
                self.entries.append(fields)
                self.redis.xack("communitree:results:default", "program", entry)
            mine_now = [f for f in self.entries if f.get("correlation_id") == mine]
            return [f for f in mine_now if "status" in f or f.get("type") == "rejected"]

        until(ended, 90, self.stack.logs)
        return ended()[0]

    def look(self, op: str, **args: Any) -> Any:
        corpus = {} if op == "corpora" else {"corpus": CORPUS}
        end = self.ask({"kind": "look", "op": op, "args": args, **corpus})
        assert (end["kind"], end["op"]) == ("look", op)
        whole = self.store.get(end["object"])
        assert end.get("result", whole.decode()) == whole.decode()
        assert ("result" in end) == (len(whole) <= 4096)
        found = json.loads(whole)
        return found["result"] if end["status"] == "done" else found["error"]


@pytest.fixture(scope="module")
def program(stack: Stack, client: Client, topics: Path) -> Program:
    """It has indexed 1,200 documents of a list that have twelve contents."""
    made = Program(stack, client)
    contents = [made.put("documents", path.read_bytes()) for path in sorted(topics.glob("*.txt"))]
    lines = [json.dumps({"name": f"{n:04}.txt", **contents[n % len(contents)]}) + "\n" for n in range(1200)]
    listed = made.put("lists", "".join(lines).encode())
    end = made.ask({"kind": "corpus", "corpus": CORPUS, "document_list": listed})
    assert end["status"] == "published", (end, stack.logs())
    return made


def schema(name: str) -> Any:
    return json.loads((ROOT / "docs" / "schemas" / f"{name}.json").read_text(encoding="utf-8"))


def test_the_documents_of_a_list_are_indexed(program: Program, client: Client, topics: Path) -> None:
    (corpus,) = [c for c in program.look("corpora")["corpora"] if c["name"] == CORPUS]
    assert corpus["counts"]["documents"] == len(list(topics.glob("*.txt")))
    job = next(f["job"] for f in program.entries if f.get("status") == "published")
    left_out = client.result(job).left_out  # type: ignore[union-attr]
    assert sum(group.count for group in left_out) > 1_000
    assert all(len(group.examples) <= 20 for group in left_out)
    needs = client._store.get_json(client._jobs.keys.needs(CORPUS, corpus["version"]))
    assert len(needs["documents"]) == len(list(topics.glob("*.txt")))


def test_every_look_comes_back_by_the_stream(program: Program) -> None:
    tree = program.look("tree")
    jsonschema.validate(tree, schema("tree"))
    report = program.look("report", community=tree["communities"][0]["id"])
    assert report["title"]
    assert report["text_units"]
    unit = program.look("source", text_unit=report["text_units"][0])
    assert unit["id"] == report["text_units"][0]
    (plan,) = program.look("plan", question="What is said of tuples?")["plans"]
    jsonschema.validate(plan, schema("plan"))
    assert len(program.look("plan", question="What is said of tuples?", which="all")["plans"]) > 3
    files = program.look("export")["files"]
    assert all(len(program.store.get(file["key"])) == file["size"] for file in files)


def test_a_look_that_fails_says_why(program: Program) -> None:
    error = program.look("report", community=999_999)
    assert error["code"] == "usage"
    assert "no community 999999" in error["message"]


def test_a_question_by_the_stream_is_answered(program: Program) -> None:
    end = program.ask({"kind": "query", "corpus": CORPUS, "question": "What is said of tuples?"})
    assert end["status"] == "answered"
    jsonschema.validate(program.store.get_json(f"default/jobs/{end['job']}/result.json"), schema("answer"))


def test_gc_removes_lists_that_no_job_needs_any_more(program: Program, client: Client) -> None:
    assert list(client._store.keys(f"{FOLDER}/lists/"))
    client.collect(older_than=-60)
    assert not list(client._store.keys(f"{FOLDER}/lists/"))
    assert program.look("tree")["communities"]
