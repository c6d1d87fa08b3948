"""The repository as data: its packages, modules, imports and strings, read from the syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PACKAGES = {
    "communitree_shared": ROOT / "shared/communitree_shared",
    "communitree": ROOT / "producer/communitree",
    "communitree_workers": ROOT / "workers/communitree_workers",
}


@dataclass(eq=False)
class Module:
    """One module. `imports`: full dotted names of all it imports; `eager_imports`: those made when it is imported."""

    name: str
    path: Path
    lines: int
    tree: ast.Module = field(repr=False)

    @classmethod
    def read(cls, name: str, path: Path) -> Module:
        text = path.read_text(encoding="utf-8")
        return cls(name, path, len(text.splitlines()), ast.parse(text, str(path)))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def imports(self) -> list[str]:
        return sorted({t for node in self.nodes for t in self._targets(node)})

    @cached_property
    def eager_imports(self) -> list[str]:
        return sorted({t for node in _eager(self.tree.body) for t in self._targets(node)})

    @cached_property
    def strings(self) -> list[str]:
        """Every string constant but docstrings."""
        docs = {id(d) for node in self.nodes if (d := _docstring(node)) is not None}
        constants = (n for n in self.nodes if isinstance(n, ast.Constant) and id(n) not in docs)
        return [n.value for n in constants if isinstance(n.value, str)]

    @property
    def joined(self) -> Iterator[str]:
        """Every f-string, with `{` where a value stands."""
        for node in self.nodes:
            if isinstance(node, ast.JoinedStr):
                yield "".join(v.value if isinstance(v, ast.Constant) else "{" for v in node.values)

    def _targets(self, node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                depth = node.level - (1 if self.path.name == "__init__.py" else 0)
                parts = self.name.split(".")
                base = ".".join([*parts[: len(parts) - depth], *([base] if base else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def modules() -> Iterator[Module]:
    """Yield every module of the three packages."""
    for package, folder in PACKAGES.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join([package, *(parts[:-1] if parts[-1] == "__init__" else parts)])
            yield Module.read(name, path)


def _eager(body: list[ast.stmt]) -> Iterator[ast.AST]:
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            yield from _eager(node.orelse)
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.ClassDef):
            yield from _eager(node.body)
            yield from _eager(getattr(node, "orelse", []))
            for handler in getattr(node, "handlers", []):
                yield from _eager(handler.body)
        else:
            yield node


def _docstring(node: ast.AST) -> ast.Constant | None:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            return first.value
    return None
