"""The evidence of community reports beside GraphRAG's, on the same planted corpora and communities, in one run.

For each size: CPU seconds to build the contexts of all communities (counting every row's tokens included), the
"floor" of tokenising every row once, one by one, and for the slots (community, relationship inside it) where each
relationship is: in its community's prompt, behind a child report in it, counted in a pair row of it, known only by what
a child's report, or its title and summary, tells in sum, or left out. `foreign` is the share of the relationships in
prompts that do not belong to the community.

GraphRAG's side is `build_local_context` as `create_community_reports` calls it; it builds every context before the
first report exists, so that no child report can stand in. Ours gets stand-ins of the length of a model's report, whose
tokens are counted outside the clock, as the report's own worker does. The peer runs only up to `--peer-up-to` entities.

    python benchmarks/bench_reports.py --sizes 1000 10000 100000
"""

from __future__ import annotations

import argparse
import gc
import logging
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, TypeVar

from communitree_shared import tokens
from communitree_shared.contract import tables as names
from communitree_shared.contract.options import ClusterOptions, ReportOptions
from communitree_workers.cluster.core import build
from communitree_workers.report.evidence import EvidenceBuilder, rows
from communitree_workers.report.records import ChildReport, Evidence
from communitree_workers.tables.io import Tables
from planted import planted

T = TypeVar("T")

MAX_TOKENS = 8_000
#: Characters of a stand-in: about 640 tokens, what models wrote on average in the measured indexes.
REPORT_CHARACTERS = 2_900

#: CPU seconds against the floor; against the peer's.
GOALS = {"floor": 1.5, "peer": 1 / 7}


@dataclass
class Side:
    """What one side did: CPU seconds and slots by state."""

    cpu: float
    slots: Counter[str]
    complete: int = 0
    communities: int = 0

    def share(self, state: str) -> str:
        return f"{100 * self.slots[state] / max(1, self.slots['total']):.1f} %"

    def foreign(self) -> str:
        return f"{100 * self.slots['foreign'] / max(1, self.slots['foreign'] + self.slots['direct']):.1f} %"


def timed(step: Callable[[], T]) -> tuple[T, float]:
    gc.collect()
    start = time.process_time()
    result = step()
    return result, time.process_time() - start


def corpus(entities: int, seed: int) -> Tables:
    clustered = build(planted(entities, seed), ClusterOptions())
    return {**clustered.tables, names.COMMUNITIES: clustered.communities}


def floor(tables: Tables, encoding: str) -> float:
    """Return the CPU seconds of tokenising every row once."""
    kinds = {"entities": names.ENTITIES, "relationships": names.RELATIONSHIPS}
    rendered = [
        row
        for kind, name in kinds.items()
        for row in rows.numbered(tables[name]["human_readable_id"].to_pylist(), rows.tails(kind, tables[name]))
    ]
    encode = tokens.encoding(encoding).encode_ordinary
    return timed(lambda: sum(len(encode(row)) for row in rendered))[1]


def stand_in(evidence: Evidence, encoding: str) -> ChildReport:
    """Return a report of a model's length, made of the evidence's own words, its rows counted."""
    title = ", ".join(evidence.names[:2])
    text = evidence.data[:REPORT_CHARACTERS].replace("\n", " ")
    full, short = rows.report_tails(title, text[:500], f"# {title}\n\n{text}")
    return ChildReport(
        community=evidence.community,
        title=title,
        summary=text[:500],
        full_content=f"# {title}\n\n{text}",
        n_tokens=tokens.count(text, encoding),
        n_tokens_summary=tokens.count(text[:500], encoding),
        row_tokens=rows.count_tail(full, encoding),
        title_row_tokens=rows.count_tail(short, encoding),
        rank=5.0,
        counts=evidence.record["counts"],
        gaps=evidence.gaps,
        hash=evidence.hash,
    )


def ours(tables: Tables, encoding: str) -> Side:
    options = ReportOptions(max_prompt_tokens=MAX_TOKENS)
    counted, cpu = timed(lambda: rows.count_rows(tables, encoding))
    builder, spent = timed(lambda: EvidenceBuilder(counted, options, encoding, "en", {}))
    side = Side(cpu + spent, Counter())
    inside = dict(
        zip(*(tables[names.COMMUNITIES][c].to_pylist() for c in ("community", "relationship_ids")), strict=True)
    )
    ids = tables[names.RELATIONSHIPS]["id"].to_pylist()
    below = dict(zip(*(tables[names.COMMUNITIES][c].to_pylist() for c in ("community", "children")), strict=True))
    children: dict[int, ChildReport] = {}
    for level in reversed(builder.levels()):
        made, spent = timed(lambda level=level, known=children: builder.build(level, known))  # type: ignore[misc]
        side.cpu += spent
        for evidence in made:
            side.slots.update({state: n["relationships"] for state, n in evidence.record["counts"].items()})
            side.slots["foreign"] += len(set(evidence.record["relationships"]) - set(inside[evidence.community]))
            behind = {row for child in below[evidence.community] or () for row in inside[child]}
            pale = evidence.gaps["aggregated"].get("relationships", [])
            side.slots["paired"] += sum(ids[row] not in behind for row in pale)
            side.slots["summed up"] += sum(ids[row] in behind for row in pale)
            side.complete += not any(evidence.record["counts"][s]["relationships"] for s in ("aggregated", "omitted"))
            side.communities += 1
        children = {evidence.community: stand_in(evidence, encoding) for evidence in made}
    return side


def theirs(tables: Tables, encoding: str) -> Side:
    """GraphRAG's local contexts for the same communities."""
    from graphrag.callbacks.noop_workflow_callbacks import NoopWorkflowCallbacks
    from graphrag.index.operations.summarize_communities.explode_communities import explode_communities
    from graphrag.index.operations.summarize_communities.graph_context.context_builder import build_local_context
    from graphrag.index.workflows.create_community_reports import _prep_edges, _prep_nodes
    from graphrag.tokenizer.get_tokenizer import get_tokenizer

    warnings.filterwarnings("ignore", module="graphrag")
    logging.disable(logging.WARNING)
    tokens.encoding(encoding)  # puts the vocabulary where tiktoken finds it without a network
    tokenizer = get_tokenizer(encoding_model=encoding)
    entities = tables[names.ENTITIES].to_pandas()
    entities = entities[entities["type"] != "document"]
    relationships = tables[names.RELATIONSHIPS].to_pandas()
    communities = tables[names.COMMUNITIES].to_pandas()

    def contexts() -> Any:
        nodes = _prep_nodes(explode_communities(communities, entities))
        edges = _prep_edges(relationships.copy())
        return build_local_context(nodes, edges, None, tokenizer, NoopWorkflowCallbacks(), MAX_TOKENS)

    frame, cpu = timed(contexts)
    side = Side(cpu, Counter(), communities=len(communities))
    numbers = dict(zip(relationships["id"], relationships["human_readable_id"], strict=True))
    inside = {row.community: {numbers[r] for r in row.relationship_ids} for row in communities.itertuples(index=False)}
    shown = dict(zip(frame["community"], frame["context_string"], strict=True))
    for community, mine in inside.items():
        found = _relationships(shown.get(community, ""))
        side.slots.update(total=len(mine), direct=len(found & mine), foreign=len(found - mine))
        side.slots["omitted"] += len(mine - found)
        side.complete += mine <= found
    return side


def _relationships(context: str) -> set[int]:
    table = context.partition("-----Relationships-----\n")[2].partition("\n\n-----")[0]
    rows = [line.partition(",")[0] for line in table.splitlines()[1:]]
    return {int(number) for number in rows if number.isdigit()}


def show(entities: int, mine: Side, peer: Side | None, base: float) -> None:
    print(f"\n{entities:,} entities, {mine.communities:,} communities; tokenising every row once: {base:.2f} CPU s")
    print(f"{'':38}{'communitree':>14}{'graphrag':>14}")

    def line(label: str, value: Callable[[Side], str]) -> None:
        print(f"{label:38}{value(mine):>14}{value(peer) if peer else '-':>14}")

    line("CPU seconds, all contexts", lambda side: f"{side.cpu:.2f}")
    line("  times the floor", lambda side: f"{side.cpu / base:.2f}")
    line("relationships in the prompt", lambda side: side.share("direct"))
    line("  behind child reports", lambda side: side.share("through"))
    line("  counted in a pair row", lambda side: side.share("paired"))
    line("  only summed up by a child", lambda side: side.share("summed up"))
    line("  left out (ours: counted and named)", lambda side: side.share("omitted"))
    line("foreign relationships in prompts", Side.foreign)
    line("communities with all in or behind it", lambda side: str(side.complete))
    print(f"goal: at most {GOALS['floor']} times the floor: {'met' if mine.cpu <= GOALS['floor'] * base else 'MISSED'}")
    if peer:
        met = mine.cpu <= GOALS["peer"] * peer.cpu
        print(f"goal: at most a seventh of the peer's time: {'met' if met else 'MISSED'} ({peer.cpu / mine.cpu:.1f} x)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--peer-up-to", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3, help="times the floor and our side are run; the best counts")
    parser.add_argument("--encoding", default="o200k_base")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    has_peer = find_spec("graphrag") is not None
    if not has_peer:
        print(
            "graphrag is not installed: only our side is measured (pip install 'communitree[bench]').", file=sys.stderr
        )
    spent: list[tuple[int, float]] = []
    for entities in args.sizes:
        tables = corpus(entities, args.seed)
        tokens.count("warm", args.encoding)
        base = min(floor(tables, args.encoding) for _ in range(args.repeat))
        mine = min((ours(tables, args.encoding) for _ in range(args.repeat)), key=lambda side: side.cpu)
        peer = theirs(tables, args.encoding) if has_peer and entities <= args.peer_up_to else None
        show(entities, mine, peer, base)
        spent.append((tables[names.ENTITIES].num_rows + tables[names.RELATIONSHIPS].num_rows, mine.cpu))
    for (few, before), (many, after) in pairwise(spent):
        print(f"\nrows x {many / few:.1f}: CPU x {after / before:.1f}")


if __name__ == "__main__":
    main()
