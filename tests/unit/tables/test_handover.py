from __future__ import annotations

from typing import Any

import pytest

from communitree_shared.contract.messages import CorpusRequest
from communitree_shared.contract.results import IndexCoverage
from communitree_shared.objects.keys import Keys
from communitree_workers.tables.handover import Extraction, Listed, TreeLevel, TreeStats

REQUEST = CorpusRequest(job="j-1", corpus="c", version="v-1", documents=[], options={})
KEYS = Keys("", "default")


class Held(dict[str, Any]):
    """A store that is a dict."""

    def get_json(self, key: str) -> Any:
        return self[key]

    def put_json(self, key: str, value: Any) -> None:
        self[key] = value


def test_what_one_stage_wrote_the_next_one_reads_and_completes() -> None:
    store = Held()
    Extraction(units=["u1"], language="zh", model="m", reused=1).save(store, KEYS, REQUEST)
    found = Extraction.load(store, KEYS, REQUEST)
    assert (found.units, found.language, found.kept, found.failed) == (["u1"], "zh", False, 0)
    found.model_copy(update={"failed": 2, "warnings": ["w"]}).save(store, KEYS, REQUEST)
    (key,) = store
    assert key == KEYS.build("c", "v-1", "extract.json")
    assert store[key] == {
        "units": ["u1"], "language": "zh", "model": "m", "reused": 1, "failed": 2, "warnings": ["w"],
    }  # fmt: skip
    assert "units" not in Extraction.load(store, KEYS, REQUEST).as_json(but={"units"})


def test_what_a_later_release_wrote_beside_is_ignored() -> None:
    store = Held({KEYS.build("c", "v-1", "extract.json"): {"language": "en", "model": "m", "seen": 1}})
    assert Extraction.load(store, KEYS, REQUEST) == Extraction(language="en", model="m")


def test_what_no_stage_wrote_is_missing() -> None:
    with pytest.raises(KeyError):
        TreeStats.load(Held(), KEYS, REQUEST)


def test_a_trees_figures_come_back_as_they_were() -> None:
    store = Held()
    level = TreeLevel(communities=1, leaves=1, entities=2, size_max=2)
    tree = TreeStats(coverage=IndexCoverage(entities=0.5), levels={"0": level}, held_twice=Listed(count=1, ids=["e"]))
    tree.save(store, KEYS, REQUEST)
    assert TreeStats.load(store, KEYS, REQUEST) == tree
    assert "oversize_leaves" not in tree.as_json(), "a tree that was brought has no such figure"
