"""A selection is one declaration, one function and its test; everything else derives from these."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from communitree_shared.contract.strategies import STRATEGIES
from support.house import PACKAGES, ROOT
from support.selections import missing

#: One more, as somebody would write it: the heaviest reports, so many.
DECLARED = """        Strategy(
            "heaviest",
            help="The N heaviest reports.",
            options=("level",),
            value="number",
            sets="level",
            examples=({"level": 1},),
            says={"heaviest": ("the {n} heaviest", "最重的 {n} 份")},
        ),
"""
FUNCTION = """
import numpy as np

from communitree_workers.query.selection.choice import Choice, describe
from communitree_workers.query.wording.phrases import say


def choose(question, price=None):
    nodes = np.argsort(-question.view.mass, kind="stable")[: question.selection.level]
    return describe(question, Choice(nodes, say("why.heaviest", question.language, n=len(nodes))))
"""
#: What the whole system says of it then, told by a process of its own.
SEEN = """
import json, sys
from generate import help_of, knob_table, selection_table
from communitree.cli import selections
from communitree_shared.contract.options import QueryOptions, SelectionOptions
from communitree_shared.contract.strategies import STRATEGIES, TAKEN_BY
from support.questions import plan_all, select
from support.selections import missing
from support.views import TreeShape, view_of

view = view_of(TreeShape((-1, -1, 0, 0), (10,) * 4, (0, 5, 1, 1)))
out = {"missing": missing(STRATEGIES["heaviest"]), "taken_by": TAKEN_BY["level"]}
out |= {"flag": help_of("ask"), "table": selection_table(), "knobs": knob_table()}
out["schema"] = json.dumps(QueryOptions.model_json_schema())
out["given"] = selections.take({name: 1 if name == "heaviest" else None for name in STRATEGIES})
if not any("its module" in lack for lack in out["missing"]):
    out["plans"] = [p.selection.strategy for p in plan_all(view, QueryOptions(), "q")]
    found = select(view, SelectionOptions(strategy="heaviest", level=1), "哪些？")
    out |= {"ids": found.ids, "why": found.selection.why}
print(json.dumps(out))
"""


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_selection_has_all_that_it_needs(name: str) -> None:
    assert missing(STRATEGIES[name]) == []


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of the code in which one more selection is declared."""
    for package, folder in PACKAGES.items():
        shutil.copytree(folder, tmp_path / folder.relative_to(ROOT), ignore=shutil.ignore_patterns("__pycache__"))
        assert (tmp_path / folder.relative_to(ROOT) / "__init__.py").exists(), package
    for part in ("tests/support", "tests/unit/query/selection", "docs"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    table = tmp_path / "shared/communitree_shared/contract/strategies.py"
    text = table.read_text("utf-8")
    start = "    for declared in (\n"
    assert text.count(start) == 1
    table.write_text(text.replace(start, start + DECLARED), "utf-8")
    return tmp_path


def seen(house: Path) -> dict[str, Any]:
    parts = ("shared", "producer", "workers", "tests", "docs")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(str(house / part) for part in parts)}
    done = subprocess.run([sys.executable, "-c", SEEN], env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_one_that_is_only_declared_is_told_what_it_lacks(house: Path) -> None:
    function, test = seen(house)["missing"]
    assert function == (
        "heaviest: its module, workers/communitree_workers/query/selection/heaviest.py, with the function `choose`"
    )
    assert test == "heaviest: a test in tests/unit/query/selection"


def test_a_declaration_and_a_function_are_a_selection_everywhere(house: Path) -> None:
    (house / "workers/communitree_workers/query/selection/heaviest.py").write_text(FUNCTION, "utf-8")
    found = seen(house)
    assert found["missing"] == ["heaviest: a test in tests/unit/query/selection"]
    assert "--heaviest" in found["flag"]
    assert "The N heaviest reports." in found["flag"]
    assert "| `heaviest` | `--heaviest N` | `level` | The N heaviest reports. |" in found["table"]
    assert "`--heaviest N, --frontier N, --levels N\\|all`" in found["knobs"]
    assert found["taken_by"] == ["heaviest", "frontier", "levels"]
    assert '"heaviest"' in found["schema"]
    assert found["given"] == {"strategy": "heaviest", "level": 1}
    assert "heaviest" in found["plans"]
    assert found["ids"] == [1]
    assert found["why"] == "最重的 1 份"
