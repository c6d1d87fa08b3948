"""Selections: every way to choose which reports a question reads, declared once.

Flags, options, plans and documentation come from here. The function of a selection is a module of its name in the
workers' `query/selection`. An option that only it has is a field of `SelectionOptions`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

#: Options of walks that rate communities on the way.
_RATED = ("threshold", "num_repeats", "rate_use_summary", "max_level", "max_rating_calls", "candidates_per_call")
#: An option of all that read reports.
_RANK = "min_community_rank"


@dataclass(frozen=True)
class Strategy:
    """One way to select.

    `help`: of its flag, "" where it has none; `otherwise`: how it is chosen then.
    `options`: fields of `SelectionOptions` that it keeps to; others beside it are refused, but for a budget in money,
    which is a ceiling beside any.
    `value`: what its flag takes, "" for nothing; `sets`: the field that this goes to.
    `walks`: whether it asks a model to rate communities on the way.
    `reads`: rows of what.
    `examples`: options that `--plan all` shows it with.
    `says`: why the selection is what it is, in English and Chinese; the workers say it as `why.<key>`.
    """

    name: str
    help: str = ""
    otherwise: str = ""
    options: Sequence[str] = ()
    value: Literal["", "share", "number", "number or all"] = ""
    sets: str = ""
    walks: bool = False
    reads: Literal["reports", "sources"] = "reports"
    examples: Sequence[Mapping[str, object]] = (MappingProxyType({}),)
    says: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def flag(self) -> str:
        """Return its flag as people write it, "" where it has none."""
        return f"--{self.name}" if self.help else ""

    def keeps_to(self, option: str) -> bool:
        """Say whether an option means anything to it."""
        return option in self.options or (option == _RANK and self.reads == "reports")


#: By name, in the order in which plans stand side by side.
STRATEGIES: dict[str, Strategy] = {
    declared.name: declared
    for declared in (
        Strategy(
            "auto",
            otherwise="Where nothing is chosen: the reports that match the question's words, and a cut of everything.",
            options=("auto_tokens",),
            says={
                "themes_general": (
                    "the question is about the whole corpus, so the whole budget goes to an even cut",
                    "问题针对整个语料，全部预算用于均匀的一刀",
                ),
                "themes_unknown": (
                    "no report has the question's words, so the whole budget goes to an even cut",
                    "没有报告含有问题中的词，全部预算用于均匀的一刀",
                ),
                "themes_common": (
                    "the question's words stand in most reports, so the whole budget goes to an even cut",
                    "问题中的词出现在大多数报告里，全部预算用于均匀的一刀",
                ),
                "themes_whole": (
                    "the finest cut of the whole corpus fits the budget",
                    "整个语料最细的一刀也在预算之内",
                ),
                "focused": (
                    "{count:pick|picks} among the reports whose text matches {words} best, and a cut of everything "
                    "with the rest of the budget",
                    "从正文与 {words} 最匹配的报告中选出 {count} 份，其余预算用于对整个语料的一刀",
                ),
                "picks": (
                    "the full text of all reports, of any level, was searched for {words}",
                    "在各层所有报告的全文中查找 {words}",
                ),
            },
        ),
        Strategy(
            "budget",
            otherwise="The finest reports within a budget; giving one chooses it.",
            options=("budget_tokens", "budget_reports", "stable"),
            examples=({"budget_tokens": 48_000}, {"budget_reports": 50}),
            says={
                "budget": (
                    "the finest cut of the community tree within {limit}: {reports:report|reports}, refined where a "
                    "token buys most",
                    "在{limit}之内最细的一刀：{reports} 份报告，优先细化每个词元收益最大的分支",
                ),
                "budget_roots": (
                    "not all top-level reports fit {limit}: the heaviest for their size are read",
                    "顶层报告不能全部放进{limit}：读取单位篇幅内最重的那些",
                ),
                "stable": (
                    " (stable: only the core, which never gets coarser as the budget grows)",
                    "（稳定：只取预算增大时不会变粗的核心）",
                ),
            },
        ),
        Strategy(
            "leaves",
            "The finest reports of all.",
            says={
                "leaves": ("the finest reports of every branch, without a limit", "每个分支最细的报告，不设上限"),
            },
        ),
        Strategy(
            "coverage",
            "The fewest tokens that read this share of the corpus: 0.8 or 80%.",
            options=("coverage",),
            value="share",
            sets="coverage",
            examples=({"coverage": 0.8},),
            says={
                "coverage": (
                    "the fewest tokens whose reports' own evidence has {share:.0%} of the corpus's mass",
                    "用最少的词元，使所选报告自身的依据占语料总量的 {share:.0%}",
                ),
                "coverage_short": (
                    "even the own evidence of all reports has less than {share:.0%} of the corpus's mass: those with "
                    "the most are taken",
                    "全部报告自身的依据合起来也不到语料总量的 {share:.0%}：取最多的那些",
                ),
            },
        ),
        Strategy(
            "relevant",
            "Walk the tree by relevance.",
            options=("budget_tokens", "budget_reports", *_RATED, "max_depth", "audit_pruned"),
            walks=True,
            says={
                "relevant": (
                    "walked from the roots: {rated}, {pruned:branch|branches} pruned",
                    "从根开始逐层评分：{rated}，剪掉 {pruned} 个分支",
                ),
                "relevant_budget": (
                    "; of the relevant ones the most relevant cut within {limit}",
                    "；相关者中取{limit}之内最相关的一刀",
                ),
                "relevant_audit": (
                    "; {count:pruned community is|pruned communities are} read among them, as an audit",
                    "；其中包括作为抽查读取的 {count} 个被剪去的社区",
                ),
            },
        ),
        Strategy(
            "dynamic",
            "GraphRAG 3's own relevance walk.",
            options=(*_RATED, "keep_parent"),
            walks=True,
            says={
                "dynamic": ("GraphRAG's relevance walk: {rated}", "GraphRAG 的相关性遍历：{rated}"),
            },
        ),
        Strategy(
            "frontier",
            "Each entity once: its deepest community of level ≤ N.",
            options=("level",),
            value="number",
            sets="level",
            examples=({"level": 0}, {"level": 1}, {"level": 2}),
            says={
                "frontier": (
                    "each entity once: communities of level {level} and the leaves above",
                    "每个实体只读一次：第 {level} 层的社区以及在其上方就结束的叶子",
                ),
            },
        ),
        Strategy(
            "levels",
            "All reports of level ≤ N.",
            options=("level",),
            value="number or all",
            sets="level",
            examples=({"level": 0}, {"level": 1}, {"level": 2}, {"level": None}),
            says={
                "levels": ("all reports of levels up to {level}", "第 {level} 层及以上的全部报告"),
                "levels_all": ("all reports of all levels", "所有层的全部报告"),
            },
        ),
        Strategy(
            "texts",
            "The text units themselves, no reports.",
            reads="sources",
            says={
                "texts": ("the text units themselves, no reports", "文本单元本身，不读报告"),
            },
        ),
    )
}


#: Options of selections, and the selections that keep to them.
TAKEN_BY: dict[str, tuple[str, ...]] = {
    option: tuple(name for name, declared in STRATEGIES.items() if declared.keeps_to(option))
    for option in (*dict.fromkeys(o for declared in STRATEGIES.values() for o in declared.options), _RANK)
}


def walks(strategy: str) -> bool:
    """Say whether a selection rates communities on the way; one that another release has does not."""
    return strategy in STRATEGIES and STRATEGIES[strategy].walks


def reads_texts(strategy: str) -> bool:
    """Say whether a selection reads text units in the place of reports."""
    return strategy in STRATEGIES and STRATEGIES[strategy].reads == "sources"
