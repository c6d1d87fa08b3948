"""Things that no honest caller sends, from a seed: envelopes for queues, entries for the intake, files, words."""

from __future__ import annotations

import base64
import io
import json
import random
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from communitree_shared.contract.messages import QUEUE_PREFIX, QUEUES, TASKS

#: Values that stand where others are expected.
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 2**63, 1e308, float("nan"), float("inf"), "", "x" * 5000, "\x00", "..", "../../etc/passwd",
    "a|b",
    "a:b", "\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "replace"), "王" * 300, [], [None], [[[[]]]], {},
    {"a": {"b": {}}}, {"id": 7}, "1; DROP", "%s%n", "-1", "1e999", "\u202e", "communitree:job:default:x",
)  # fmt: skip


def odd(rng: random.Random) -> Any:
    """Return any of them."""
    return rng.choice(ODD)


def bodies(rng: random.Random, task: str) -> Any:
    """Return the body of a message that is wrong somewhere."""
    body: dict[str, Any] = {
        "v": 1, "task": task, "tenant": "default", "job": f"fuzz-{rng.random()}", "stage": "map", "id": "m",
        "units": [{"id": "u", "args": {}}],
    }  # fmt: skip
    for _ in range(rng.randint(1, 3)):
        name = rng.choice([*body, "deadline", "extra"])
        if rng.random() < 0.3:
            body.pop(name, None)
        else:
            body[name] = odd(rng)
    if rng.random() < 0.3:
        body["units"] = [{"id": odd(rng), "args": odd(rng)} for _ in range(rng.randint(0, 300))]
    return rng.choice([body, body, body, [body], odd(rng)])


def envelope(rng: random.Random, queue: str, task: str) -> str:
    """Return what a foreign producer might push into a queue: an envelope that is wrong somewhere, or none at all."""
    if rng.random() < 0.1:
        return rng.choice(["", "null", "[]", "{", "\x00\x01", '"text"', "1" * 1000, "{}", '{"body": 1}'])
    inner = json.dumps([[bodies(rng, task)], {}, {"callbacks": None}])
    coding = rng.choice(["base64", "base64", "utf-8", "nonsense", None, 7])
    body = base64.b64encode(inner.encode()).decode() if coding == "base64" else inner
    identity = str(uuid.UUID(int=rng.getrandbits(128)))
    headers: Any = {"lang": "py", "task": task, "id": identity, "root_id": identity, "argsrepr": "", "retries": 0}
    properties: Any = {
        "delivery_tag": identity, "delivery_mode": 2, "body_encoding": coding, "priority": 0,
        "delivery_info": {"exchange": "", "routing_key": queue},
    }  # fmt: skip
    made: dict[str, Any] = {
        "body": body, "content-type": "application/json", "content-encoding": "utf-8", "headers": headers,
        "properties": properties,
    }  # fmt: skip
    for part in (made, headers, properties, properties["delivery_info"]):
        if rng.random() < 0.4:
            name = rng.choice(list(part))
            if rng.random() < 0.4:
                del part[name]
            else:
                part[name] = odd(rng)
    if rng.random() < 0.1:
        made["content-type"] = rng.choice(["application/x-python-serialize", "application/x-yaml", "text/plain", ""])
    return json.dumps(made)


#: What Celery and kombu read of an envelope, each with values that would make them do something.
HEADERS: dict[str, tuple[Any, ...]] = {
    "timelimit": ([1e9, "x"], ["x", None], [None, -1], [0.001, 0.001], {}, 7),
    "compression": ("zlib", "application/x-gzip", "application/x-bz2", "none", 7),
    "eta": ("2030-01-01T00:00:00Z", "x", 10**30, ""), "expires": ("2001-01-01T00:00:00Z", "x", -1, 0),
    "shadow": ("os.system", 7, ["x"]), "ignore_result": (False, "x"), "replaced_task_nesting": (10**9, "x"),
    "stamped_headers": (["a"], 7), "stamps": ({"a": ["b"]}, "x"), "group": ("g", 7), "group_index": (0, "x"),
    "id": ("same", 7, ""), "root_id": (7,), "parent_id": (7,), "origin": (7,), "lang": ("js", 7),
    "argsrepr": (7, "x" * 10_000), "kwargsrepr": (7,), "retries": (-1, "x", 10**30), "redelivered": ("x",),
    "meth": ("__del__",), "utc": (False,), "taskset": ("x",), "chord": ({"task": "os.system"},), "fault": ("x",),
    "errbacks": ([{"task": "os.system"}],), "delivery_info": (7, {}), "properties": (7,), "hostname": (7,),
}  # fmt: skip
PROPERTIES: dict[str, tuple[Any, ...]] = {
    "reply_to": ("communitree.map", 7), "correlation_id": ("same", 7), "priority": (9, -1, 300, "x", [1]),
    "delivery_tag": ("same", 7, None, ["x"], {}), "delivery_mode": ("x", 1), "expiration": ("1",), "type": (7,),
    "delivery_info": (7, None, [], {"exchange": "celery", "routing_key": "x"}, {"exchange": 7, "routing_key": 7}),
    "body_encoding": ("base64", "zlib", 7, None), "message_id": (7,), "user_id": ("root",), "headers": ({"x": 1},),
}  # fmt: skip
_CALL = {"task": "os.system", "args": ["true"], "kwargs": {}, "options": {}, "subtask_type": None, "immutable": False}
EMBEDDED: dict[str, tuple[Any, ...]] = {
    "callbacks": ([_CALL], "x", 7), "errbacks": ([_CALL], [7], "x"), "chain": ([_CALL], "x"), "chord": (_CALL, "x", 7),
}  # fmt: skip
TOP: dict[str, tuple[Any, ...]] = {
    "content-type": ("application/x-python-serialize", "application/x-yaml", "text/plain", "", 7, None),
    "content-encoding": ("binary", "utf-16", "zlib", 7, None), "headers": (None, [], "x"), "properties": (None, 7),
}  # fmt: skip


def hostile(rng: random.Random, queue: str, message: Any) -> str:
    """Return an envelope around a message (its JSON as an object) that asks for more than its publisher may."""
    named = [
        *((HEADERS, n) for n in HEADERS),
        *((PROPERTIES, n) for n in PROPERTIES),
        *((EMBEDDED, n) for n in EMBEDDED),
    ]
    named += [(TOP, n) for n in TOP if rng.random() < 0.2]
    chosen = rng.sample(named, rng.randint(1, 4))
    put: dict[int, dict[str, Any]] = {id(kind): {} for kind in (HEADERS, PROPERTIES, EMBEDDED, TOP)}
    for kind, name in chosen:
        put[id(kind)][name] = rng.choice([*kind[name], odd(rng)])
    embedded = {"callbacks": None, "errbacks": None, "chain": None, "chord": None, **put[id(EMBEDDED)]}
    identity = str(uuid.UUID(int=rng.getrandbits(128)))
    return json.dumps({
        "body": json.dumps([[message], {}, embedded]), "content-type": "application/json", "content-encoding": "utf-8",
        "headers": {"lang": "py", "task": message["task"], "id": identity, **put[id(HEADERS)]},
        "properties": {
            "delivery_tag": identity, "delivery_mode": 2, "body_encoding": "utf-8", "priority": 0,
            "delivery_info": {"exchange": "", "routing_key": queue}, **put[id(PROPERTIES)],
        },
        **put[id(TOP)],
    })  # fmt: skip


def envelopes(rng: random.Random, each: int) -> Iterator[tuple[str, str]]:
    """Yield (queue, envelope), twice so many for each queue."""
    for name in QUEUES:
        tasks = [t for t, q in TASKS.items() if q == name.removesuffix(".local")]
        for _ in range(each):
            task = rng.choice([*tasks, "communitree.corpus.none.v9", "os.system", ""])
            yield QUEUE_PREFIX + name, envelope(rng, QUEUE_PREFIX + name, task)
            asked = {"task": rng.choice(tasks), "tenant": "default", "job": f"fuzz-{rng.random()}", "stage": "map",
                     "id": "m", "units": [{"id": "u"}]}  # fmt: skip
            yield QUEUE_PREFIX + name, hostile(rng, QUEUE_PREFIX + name, asked)


def entries(rng: random.Random, number: int) -> Iterator[dict[str, str]]:
    """Yield entries of the requests' stream that are wrong, nearly all of them."""
    for _ in range(number):
        request: Any = {
            "kind": rng.choice(["query", "corpus", "cancel", "look"]), "corpus": "none such", "question": "What?",
            "documents": [{"name": "a", "sha256": "0" * 64, "size": 1}],
        }  # fmt: skip
        for _ in range(rng.randint(0, 3)):
            name = rng.choice(["kind", "corpus", "question", "documents", "options", "job", "v", "correlation_id",
                               "idempotency_key", "tenant"])  # fmt: skip
            request[name] = rng.choice([odd(rng), {str(odd(rng)): odd(rng)}])
        text = json.dumps(request)
        yield rng.choice([{"request": text}, {"request": text[:-1]}, {"reqest": text}, {"request": "[" * 5000},
                          {"request": text, "tenant": "other"}, {"request": "\ufeff" + text}])  # fmt: skip


def bad_files(folder: Path) -> list[str]:
    """Write files that readers stumble over beside one good one; return the names of the bad ones."""
    folder.mkdir(parents=True)
    (folder / "good.txt").write_text("Ada Lovelace wrote to Charles Babbage about the Analytical Engine.", "utf-8")
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        with archive.open("word/document.xml", "w", force_zip64=True) as part:
            for _ in range(300):
                part.write(b"a" * 2**20)
    made = {
        "bomb.docx": bomb.getvalue(),
        "broken.docx": b"PK\x03\x04" + bytes(100),
        "broken.pdf": b"%PDF-1.7\n" + bytes(range(256)) * 4,
        "broken.parquet": b"PAR1" + bytes(50) + b"PAR1",
        "deep.json": b"[" * 200_000,
        "deep.jsonl": b'{"text": "Grace Hopper met Alan Turing."}\n' + b"[" * 200_000 + b"\n",
        "empty.txt": b"",
        "nul.txt": b"\x00" * 5000,
        "bytes.txt": bytes(random.Random(3).randrange(256) for _ in range(5000)),
        "half.csv": b'text,title\n"never closed,1\n' + b"x" * 300_000,
        "nested.html": b"<div>" * 50_000 + b"<script>" * 10 + b"deep",
        "line.txt": b"word " * 40_000,
        "utf16.txt": b"\xff\xfe" + b"\x00\xd8" * 99,
    }  # fmt: skip
    for name, data in made.items():
        (folder / name).write_bytes(data)
    for name in ("a\u202eb.txt", "新 文件.txt", "x" * 200 + ".txt", "-rf.txt", "a'b\"c;$(d).txt", "new\nline.txt"):
        (folder / name).write_text(f"The file {len(name)} tells of Ada Lovelace and the Analytical Engine.", "utf-8")
    return [name for name in made if name not in {"deep.jsonl", "nested.html", "line.txt", "empty.txt"}]
