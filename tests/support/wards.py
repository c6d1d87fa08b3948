"""An index in GraphRAG's tables with reports of a model's length, and facts planted in them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pandas as pd

VOCABULARY = [
    "harbour", "treaty", "ministry", "audit", "reservoir", "archive", "tariff", "council", "railway", "satellite",
    "orchard", "vessel", "contract", "bridge", "charter", "colony", "festival", "laboratory", "engine", "refinery",
    "museum", "pension", "regiment", "sensor", "statute", "turbine", "vaccine", "vineyard",
]  # fmt: skip


def write_index(folder: Path, reports: int, seed: int = 1, facts: dict[int, str] | None = None) -> Path:
    """Write an index of so many communities, each with its report, as GraphRAG writes its tables.

    `facts`: community → a sentence that is put into the middle of its report.
    """
    rng = random.Random(seed)
    folder.mkdir(parents=True)
    entities, links, units, communities, written = [], [], [], [], []
    for c in range(reports):
        names = [f"NAME {c}-{i}" for i in range(5)]
        unit = f"unit-{c}"
        for i, name in enumerate(names):
            entities.append(
                {"id": f"e{c}-{i}", "human_readable_id": len(entities), "title": name, "type": "person",
                 "description": f"{name} is one of the people of ward {c}.", "text_unit_ids": [unit], "frequency": 1,
                 "degree": 2, "x": 0.0, "y": 0.0}
            )  # fmt: skip
        for i in range(4):
            links.append(
                {"id": f"r{c}-{i}", "human_readable_id": len(links), "source": names[i], "target": names[i + 1],
                 "description": f"{names[i]} works with {names[i + 1]}.", "weight": 1.0, "combined_degree": 4,
                 "text_unit_ids": [unit]}
            )  # fmt: skip
        units.append(
            {"id": unit, "human_readable_id": c, "text": f"Minutes of ward {c}. " * 20, "n_tokens": 120,
             "document_id": f"d{c}", "entity_ids": [f"e{c}-{i}" for i in range(5)],
             "relationship_ids": [f"r{c}-{i}" for i in range(4)], "covariate_ids": []}
        )  # fmt: skip
        place = {"community": c, "level": 0, "parent": -1, "children": [], "period": "2026-01-01", "size": 5}
        communities.append(
            {"id": f"c{c}", "human_readable_id": c, "title": f"Community {c}", "entity_ids": units[-1]["entity_ids"],
             "relationship_ids": units[-1]["relationship_ids"], "text_unit_ids": [unit], **place}
        )  # fmt: skip
        written.append({"id": f"p{c}", "human_readable_id": c, **place, **_report(rng, c, (facts or {}).get(c, ""))})
    for name, rows in (
        ("entities", entities), ("relationships", links), ("text_units", units), ("communities", communities),
        ("community_reports", written),
    ):  # fmt: skip
        pd.DataFrame(rows).to_parquet(folder / f"{name}.parquet")
    return folder


def _report(rng: random.Random, community: int, fact: str) -> dict[str, Any]:
    def words(n: int) -> str:
        return " ".join(rng.choices(VOCABULARY, k=n)).capitalize()

    title, summary = f"Ward {community}", f"{words(40)}."
    findings = [{"summary": f"{words(6)}", "explanation": f"{words(108)}."} for _ in range(5)]
    if fact:
        findings[2]["explanation"] = f"{fact} {words(50)}."
    body = "\n\n".join(f"## {f['summary']}\n\n{f['explanation']}" for f in findings)
    return {
        "title": title, "summary": summary, "full_content": f"# {title}\n\n{summary}\n\n{body}",
        "rank": float(community % 10), "rating_explanation": "", "findings": findings, "full_content_json": "{}",
    }  # fmt: skip


#: Finds a planted fact, and tells its ward.
FACT = r"In ward (\d+) the vault holds \d+ sealed ledgers[^.]*\."


def facts(reports: int, words: int = 90) -> dict[int, str]:
    """Return a sentence of so many words for each community, which no other has."""
    rng = random.Random(7)
    return {
        c: f"In ward {c} the vault holds {c * 37 + 11} sealed ledgers {' '.join(rng.choices(VOCABULARY, k=words - 9))}."
        for c in range(reports)
    }
