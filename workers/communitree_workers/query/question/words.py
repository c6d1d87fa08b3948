"""What a question asks for, told from its words alone: the whole corpus, or something in particular; people or not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import rjieba

from communitree_workers.query.question.chinese import Cutter
from communitree_workers.query.view.lexicon import Lexicon
from communitree_workers.text.variants import simplified
from communitree_workers.text.words import is_cjk, language, terms

#: Words that ask about a corpus as a whole and name nothing in it. Compared after `terms` has folded them.
_GENERAL_EN = """
theme topic subject main major key central important principal corpus dataset data set document text book story novel
collection material report overview summary summarize summarise overall general whole entire discuss discussed describe
described cover covered contain about content pattern trend issue idea point people person character figure protagonist
who entity name list give tell explain show find happen say talk mention top most common recurring dominant broad
high-level big picture different kind type part section chapter work article file information know learn question
answer please like look role relationship relation between connection connect relate play involve matter primary core
significant notable prominent essential takeaway conclusion insight finding brief short one sentence paragraph then
organization organisation group place location event party stakeholder mentioned related influential structure moral
said happened emerge compare two several problem challenge company institution country city author writer text covers
message lesson plot setting everything anything thing fact detail aspect area field perspective view opinion common
difference similar interesting useful best biggest largest heaviest start end begin overall across
"""
_GENERAL_ZH = """
本文 丛书 文集 合集 一下 全文 语料库 文中 讨论 值得 注意 值得注意 地方 共同 共同点 同点 提到 提及
机构 观点 结构 作者 想 想要 表达 寓意 启示 各 章节 概要 摘要 主旨 名称 影响 突出 显著 趋势 挑战 困难 公司 单位
国家 城市 家族 不同 相同 区别 意义 背景 信息 有趣 最 主要 主题 内容 整体 总体 概括 总结 概述 介绍 语料 文档 文章
文本 文件 资料 数据 数据集 小说 故事 全书 本书 书中 书里 里 这本书 人物 角色 主角 谁 有哪些 哪些 哪 什么 怎么 怎样 如何
为什么 多少 讲 讲了 讲述 说 说了 写 写了 描写 关于 涉及 问题 核心 重要 关键 主线 情节 大意 中心 思想 要点 关系
之间 列出 列举 请 请问 告诉 说明 分析 分别 是谁 都 里面 其中 方面 类型 常见 重点 话题 议题 事件 地点 组织 一句
一句话 简单 简要 全部 所有 整个 部分 发生 结论 特点 情况 有 谁是 出场 出现 名字 书 人 物 哪里 几个 哪个 段 章 回
什么样 怎么样 什么时候 后来 经过 做 用处 有何 有没有 是否 能否 对比 哪位
"""

#: 这本, 那本书, 这几篇, 此书, 该: they point at the corpus and name nothing in it.
_POINTING_ZH = re.compile(r"[这那此该][一两几些]?[本部份批篇套个些卷册章段节回类种]?[书文]?|几[本部份批篇套个卷册]")

_PEOPLE = re.compile(
    r"\b(?:who|whom|people|persons?|characters?|protagonists?|figures?|names)\b|人物|角色|主角|人名|谁|哪些人|什么人",
    re.I,
)
_PLACES = re.compile(r"\b(?:where|places?|locations?|cities|countries)\b|地点|地方|哪里|何处|城市|国家", re.I)
_GROUPS = re.compile(r"\b(?:organi[sz]ations?|companies|institutions?|parties)\b|组织|机构|公司|家族|部门", re.I)
_EVENTS = re.compile(r"\b(?:events?|what happen\w*)\b|事件|情节|发生了什么", re.I)


def _folded(words: list[str]) -> frozenset[str]:
    return frozenset(term for word in words for term in terms(word)) | frozenset(words)


_GENERAL = _folded(_GENERAL_EN.split()) | _folded(_GENERAL_ZH.split())


@dataclass(frozen=True)
class Question:
    """`specific`: search terms that name something; `general`: there are none; `kind`: a key of `KINDS` or ''."""

    text: str
    language: str
    terms: tuple[str, ...]
    specific: tuple[str, ...]
    kind: str

    @property
    def general(self) -> bool:
        """Whether the question names nothing in particular."""
        return not self.specific

    def parts(self, word: str) -> tuple[str, ...]:
        """Return the Chinese search terms that stand inside a longer one."""
        return tuple(term for term in self.specific if term != word and term in word and is_cjk(term[0]))

    def unheld(self, holds: Callable[[str], bool]) -> list[str]:
        """Return the search terms that `holds` denies, with all their parts; parts are not named by themselves."""
        inside = {part for term in self.specific for part in self.parts(term)}
        return [term for term in self.specific if term not in inside and not any(map(holds, (term, *self.parts(term))))]


def is_general(term: str) -> bool:
    """Say whether a search term, in simplified characters, names nothing in a corpus: 主题, 谁, 这本书."""
    return term in _GENERAL or (term.isdigit() and len(term) < 3) or _POINTING_ZH.fullmatch(term) is not None


def read_question(text: str, lexicon: Lexicon | None = None) -> Question:
    """Read a question; with a corpus's lexicon, Chinese is cut into the words that this corpus has."""
    plain = simplified(text)
    cut = Cutter(lexicon, is_general).cut if lexicon else rjieba.cut_for_search
    found = tuple(dict.fromkeys(terms(text if lexicon else plain, cut)))
    specific = tuple(term for term in found if not is_general(simplified(term)))
    kind = ""
    for name, pattern in (("people", _PEOPLE), ("places", _PLACES), ("groups", _GROUPS), ("events", _EVENTS)):
        if pattern.search(plain):
            kind = name
            break
    return Question(text, language(text), found, specific, kind)
