"""What a declared selection must have beside its declaration, so that a half-added one is told what it lacks."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator

from pydantic import ValidationError

from communitree_shared.contract.options import SelectionOptions
from communitree_shared.contract.strategies import STRATEGIES, Strategy
from communitree_shared.errors import UsageError
from support.house import PACKAGES, ROOT

FOLDER = PACKAGES["communitree_workers"] / "query/selection"
TESTS = ROOT / "tests/unit/query/selection"
PHRASES = PACKAGES["communitree_workers"] / "query/wording/phrases.toml"


def missing(declared: Strategy) -> list[str]:
    """Return what a selection lacks, each with where it belongs."""
    return [*_function(declared), *_words(declared), *_options(declared), *_test(declared)]


def _function(declared: Strategy) -> Iterator[str]:
    module = FOLDER / f"{declared.name}.py"
    wanted = "walk" if declared.walks else "choose"
    if not module.exists():
        yield f"{declared.name}: its module, {module.relative_to(ROOT)}, with the function `{wanted}`"
        return
    body = ast.parse(module.read_text("utf-8")).body
    names = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    names |= {t.id for node in body if isinstance(node, ast.Assign) for t in node.targets if isinstance(t, ast.Name)}
    if wanted not in names:
        yield f"{declared.name}: `{wanted}` in {module.relative_to(ROOT)}"


def _words(declared: Strategy) -> Iterator[str]:
    if not declared.says:
        yield f"{declared.name}: why it reads what it reads, `says` of its declaration"
    table = tomllib.loads(PHRASES.read_text("utf-8"))
    used = Counter(key for other in STRATEGIES.values() for key in other.says)
    yield from (f"{declared.name}: a key of its own for `{key}`" for key in declared.says
                if used[key] > 1 or f"why.{key}" in table)  # fmt: skip
    if not (declared.help or declared.otherwise):
        yield f"{declared.name}: `help` for its flag, or `otherwise`: how it is chosen"


def _options(declared: Strategy) -> Iterator[str]:
    for option in (*declared.options, *filter(None, [declared.sets])):
        if option not in SelectionOptions.model_fields:
            yield f"{declared.name}: a field {option!r} of SelectionOptions"
    if bool(declared.value) != bool(declared.sets) or (declared.sets and declared.sets not in declared.options):
        yield f"{declared.name}: the option that its flag's value sets, among its options"
    for example in declared.examples:
        try:
            SelectionOptions.model_validate({**example, "strategy": declared.name}).check()
        except (ValidationError, UsageError) as error:
            yield f"{declared.name}: an example that can be planned, not {dict(example)} ({error})"
    if not declared.examples:
        yield f"{declared.name}: an example for `--plan all`"


def _test(declared: Strategy) -> Iterator[str]:
    name = declared.name
    named = re.compile(rf"strategy=\"{name}\"|def test_{name}_|\b{name.capitalize()}\b")
    if not any(named.search(path.read_text("utf-8")) for path in TESTS.glob("test_*.py")):
        yield f"{declared.name}: a test in {TESTS.relative_to(ROOT)}"
