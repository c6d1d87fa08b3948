"""Sentences that people read in an answer and its account, in English and Chinese."""

from __future__ import annotations

from typing import Any

from communitree_shared.languages import is_chinese
from communitree_shared.wording import worded

_PHRASES: dict[str, tuple[str, str]] = {
    # why a selection is what it is
    "why.budget": (
        "the finest cut of the community tree within {limit}: {reports:report|reports}, "
        "refined where a token buys most",
        "在{limit}之内最细的一刀：{reports} 份报告，优先细化每个词元收益最大的分支",
    ),
    "why.budget_roots": (
        "not all top-level reports fit {limit}: the heaviest for their size are read",
        "顶层报告不能全部放进{limit}：读取单位篇幅内最重的那些",
    ),
    "why.stable": (
        " (stable: only the core, which never gets coarser as the budget grows)",
        "（稳定：只取预算增大时不会变粗的核心）",
    ),
    "why.themes_general": (
        "the question is about the whole corpus, so the whole budget goes to an even cut",
        "问题针对整个语料，全部预算用于均匀的一刀",
    ),
    "why.themes_unknown": (
        "no report's title or summary has the question's words, so the whole budget goes to an even cut",
        "没有报告的标题或摘要含有问题中的词，全部预算用于均匀的一刀",
    ),
    "why.themes_common": (
        "the question's words stand in most reports, so the whole budget goes to an even cut",
        "问题中的词出现在大多数报告里，全部预算用于均匀的一刀",
    ),
    "why.themes_whole": (
        "the finest cut of the whole corpus fits the budget",
        "整个语料最细的一刀也在预算之内",
    ),
    "why.focused": (
        "half the budget on the coarse cut, half on refining "
        "{count:community that matches|communities that match} {words}",
        "一半预算用于粗略的一刀，另一半用于细化与 {words} 匹配的 {count} 个社区",
    ),
    "why.leaves": ("the finest reports of every branch, without a limit", "每个分支最细的报告，不设上限"),
    "why.coverage": (
        "the fewest tokens whose reports' own evidence has {share:.0%} of the corpus's mass",
        "用最少的词元，使所选报告自身的依据占语料总量的 {share:.0%}",
    ),
    "why.coverage_short": (
        "even the own evidence of all reports has less than {share:.0%} of the corpus's mass: those with the most are "
        "taken",
        "全部报告自身的依据合起来也不到语料总量的 {share:.0%}：取最多的那些",
    ),
    "why.frontier": (
        "each entity once: communities of level {level} and the leaves above",
        "每个实体只读一次：第 {level} 层的社区以及在其上方就结束的叶子",
    ),
    "why.levels": ("all reports of levels up to {level}", "第 {level} 层及以上的全部报告"),
    "why.levels_all": ("all reports of all levels", "所有层的全部报告"),
    "why.texts": ("the text units themselves, no reports", "文本单元本身，不读报告"),
    "why.relevant": (
        "walked from the roots: {rated}, {pruned:branch|branches} pruned",
        "从根开始逐层评分：{rated}，剪掉 {pruned} 个分支",
    ),
    "why.relevant_budget": (
        "; of the relevant ones the most relevant cut within {limit}",
        "；相关者中取{limit}之内最相关的一刀",
    ),
    "why.relevant_audit": (
        "; {count:pruned community is|pruned communities are} read among them, as an audit",
        "；其中包括作为抽查读取的 {count} 个被剪去的社区",
    ),
    "why.dynamic": ("GraphRAG's relevance walk: {rated}", "GraphRAG 的相关性遍历：{rated}"),
    "why.rated": (
        "{rated:community|communities} rated in {calls:call|calls}",
        "{calls} 次调用评了 {rated} 个社区",
    ),
    "why.rated_none": ("nothing rated", "没有任何评分"),
    "why.rated_for_nothing": (
        "{rated:community|communities} rated without a model call",
        "不经模型调用评了 {rated} 个社区",
    ),
    "why.unrated": (", {unrated} unrated and kept", "，{unrated} 个未评分而保留"),
    "unrated.calls": ("the limit of rating calls was reached", "评分调用次数已达上限"),
    "unrated.money": ("the part of the budget that ratings may spend was used up", "预算中可用于评分的部分已用完"),
    "unrated.deadline": ("the time for ratings was over", "评分的时限已到"),
    "unrated.failed": ("the rating calls failed", "评分调用失败"),
    "unrated.reply": ("the replies did not tell a rating", "回复里没有给出评分"),
    "why.upper_bound": (
        "upper bound: what is really read depends on the ratings",
        "上限：实际读取多少取决于评分",
    ),
    "and": (" and ", "和"),
    "limit.tokens": ("{n:token|tokens}", " {n:,} 个词元"),
    "limit.reports": ("{n:report|reports}", " {n:,} 份报告"),
    "limit.usd": ("{n:.4g} USD", " {n:.4g} 美元"),
    # why a point is not used, or not in the answer
    "not.zero": ("score 0: of no use for the question", "0 分：对回答问题没有用处"),
    "not.unparsable": ("its score could not be read", "分数无法读取"),
    "not.empty": ("it has no text", "没有正文"),
    "not.no_report": ("it names no report that it rests on", "没有注明依据哪份报告"),
    "not.duplicate": ("says the same as a point with a higher score", "与另一条分数更高的要点内容相同"),
    "not.dropped": ("did not fit the reduce prompt", "放不进归纳提示词"),
    "not.no_reduce": ("no answer was written", "没有写出答案"),
    "not.left_out": ("the answer does not use it", "答案没有采用"),
    # states
    "state.no_data": (
        "The reports that were read hold nothing that answers this question. "
        "Read without an error: {batches:batch|batches} ({reports:report|reports}).",
        "读过的报告中没有能回答这个问题的内容。全部 {batches} 批（{reports} 份报告）都已读完，没有出错。",
    ),
    "state.no_data_texts": (
        "The text units that were read hold nothing that answers this question. "
        "Read without an error: {batches:batch|batches} ({reports:text unit|text units}).",
        "读过的文本单元中没有能回答这个问题的内容。全部 {batches} 批（{reports} 个文本单元）都已读完，没有出错。",
    ),
    "state.failed": (
        "No answer: not one of {batches:batch|batches} of reports could be read, "
        "so this says nothing about the corpus. Cause: {cause}.",
        "没有答案：{batches} 批报告一批也没能读成，因此这不说明语料里有没有相关内容。原因：{cause}。",
    ),
    "state.reduce_by_hand": (
        "The model that writes the answer failed ({cause}): the points below are arranged without it.",
        "撰写回答的模型失败（{cause}）：以下要点未经模型、直接整理而成。",
    ),
    "state.reduce_part": (
        "Note: {count:point is|points are} not in this answer, because the model failed to condense them ({cause}).",
        "注意：有 {count} 条要点未写入本回答，因为模型未能归纳它们（{cause}）。",
    ),
    "state.unusable": (
        "Points were found, but none can be used: {dropped:point has|points have} no readable score, text or report. "
        "They are listed, and the question stays open.",
        "找到了要点，但都无法采用：{dropped} 条要点缺少可读的分数、正文或所依据的报告。要点已列出，问题仍未有定论。",
    ),
    "state.failed_reduce": (
        "No answer: {used:point was|points were} found, but could not be put together. Cause: {cause}. "
        "What was found is listed; the answer can be tried again without reading the reports again.",
        "没有答案：找到了 {used} 条要点，但没能归纳成答案。原因：{cause}。要点已列出，可以不重读报告而再次归纳。",
    ),
    "state.partial": (
        "Note: {failed} of {batches} batches could not be read ({cause}); what follows rests on the other {answered}.",
        "注意：{batches} 批中有 {failed} 批未能读取（{cause}）；以下内容只依据其余 {answered} 批。",
    ),
    "state.partial_nothing": (
        "Nothing was found in the {answered} of {batches} batches that were read; "
        "{failed:batch|batches} could not be read ({cause}), so the question stays open.",
        "读到的 {answered} 批（共 {batches} 批）里没有相关内容；有 {failed} 批未能读取（{cause}），问题仍未有定论。",
    ),
    "state.cancelled": ("Cancelled before an answer was written.", "在写出答案之前已取消。"),
    "state.empty": ("There was nothing to read: the selection is empty.", "没有可读的内容：选择为空。"),
    "cause.unknown": ("unknown", "不明"),
    # account
    "warn.silent": (
        "`ask --again {job}` reads {count:silent report|silent reports} once more, in smaller batches.",
        "有 {count} 份报告没有被任何要点引用；可用 `ask --again {job}` 以更小的批次再读一遍。",
    ),
    "warn.unread": (
        "`ask --again {job}` reads {count:report|reports} whose batch failed.",
        "有 {count} 份报告因所在批次失败而未读；可用 `ask --again {job}` 读取。",
    ),
    "warn.audit": (
        "Audit: {sample:pruned community was|pruned communities were} read all the same; "
        "{count:point rests|points rest} on them alone or in part.",
        "抽查：仍读取了 {sample} 个被剪去的社区；有 {count} 个要点以它们为依据，本来会被漏掉。",
    ),
    "warn.audit_cut": (
        "The audit's sample was cut to {sample} of {wanted} communities: it takes at most half of the budget.",
        "抽查样本从 {wanted} 个社区减为 {sample} 个：最多占用预算的一半。",
    ),
    "warn.unrated": (
        "{count:community|communities} kept without a rating: {cause}.",
        "{count} 个社区未评分而保留：{cause}。",
    ),
    "warn.audit_none": (
        "Audit: no community was pruned, so there was nothing to sample.",
        "抽查：没有社区被剪去，因此无可抽查。",
    ),
    "why.again": (
        "the {count:silent or unread report|silent or unread reports} of job {job}, in smaller batches; "
        "its reports, points, batches and coverage count here, too",
        "以更小的批次重读任务 {job} 中 {count} 份未被引用或未读的报告；该任务的报告、要点、批次和覆盖率也计入此处",
    ),
    "warn.words_missing": (
        "No report of the corpus has these words of the question: {words}.",
        "语料的所有报告都不含问题中的这些词：{words}。",
    ),
    "warn.words_missing_texts": (
        "No text unit of the corpus has these words of the question: {words}.",
        "语料的所有文本单元都不含问题中的这些词：{words}。",
    ),
    "warn.words_apart": (
        "The corpus has all words of the question, but nothing that was read has enough of them in one place.",
        "问题中的词语料里都有，但读过的内容中没有一处同时含有足够多的词。",
    ),
    "warn.words_unfound": (
        "No statement that was found has these words of the question: {words}.",
        "找到的陈述都不含问题中的这些词：{words}。",
    ),
    "warn.built_in": (
        "The built-in model only matches words: asked in other words than the text's, it finds nothing. "
        "A real model (COMMUNITREE_LLM_BASE_URL, COMMUNITREE_LLM_MODEL) reads.",
        "内置模型只按字词匹配：提问的用词与原文不同就找不到。接入真正的模型"
        "（COMMUNITREE_LLM_BASE_URL、COMMUNITREE_LLM_MODEL）才会阅读理解。",
    ),
    "warn.at_limit": (
        "{count:reply|replies} reached the word limit and may have left something out.",
        "{count} 个回复达到字数上限，可能有遗漏。",
    ),
    "warn.dropped": (
        "{count:point|points} could not be used; each is listed with the reason.",
        "{count} 条要点未能采用，已列出并注明原因。",
    ),
    "warn.shortened": (
        "{count:point was|points were} shortened to fit the reduce prompt.",
        "{count} 条要点因过长被截短。",
    ),
    "warn.unverified": (
        "{count:citation in the answer is|citations in the answer are} marked: no used point rests on what they name.",
        "答案中有 {count} 处引用没有要点依据，已标出。",
    ),
    "warn.uncited": (
        "The answer cites nothing that was read: none of its statements can be checked. The points are listed.",
        "答案没有引用任何读过的内容，其中的陈述都无法核实。要点已列出。",
    ),
    "warn.overview_only": (
        "{count:used point rests|used points rest} on the overview alone, not on a report that was read.",
        "有 {count} 条采用的要点只依据概览，不依据所读的报告。",
    ),
    "warn.rank": (
        "{count:report was|reports were} left out: below the minimum rank.",
        "{count} 份低于最低评级的报告未读。",
    ),
    "warn.missing": (
        "{count:community has|communities have} no report: left out.",
        "{count} 个社区没有报告，未读。",
    ),
    # rules inside the reduce prompt
    "rule.general_off": (
        "Add nothing that the points do not say; where they do not answer the question, say so.",
        "不要加入要点之外的内容；要点没有回答的地方，请直接说明。",
    ),
    "rule.general_on": (
        "You may add what is generally known where it helps; mark each such statement [General knowledge: verify].",
        "必要时可以补充一般常识，但每一处都要标上 [常识：待核实]。",
    ),
    # the built-in model's answers
    "answer.themes": ("The corpus is mainly about {names}.", "全文主要围绕{names}展开。"),
    "answer.theme": ("The corpus is mainly about {names}.", "全文主要讲{names}。"),
    "answer.people": ("The main persons are {names}.", "主要人物有{names}。"),
    "answer.places": ("The main places are {names}.", "主要地点有{names}。"),
    "answer.groups": ("The main organizations and groups are {names}.", "主要的组织与群体有{names}。"),
    "answer.events": ("The main events are {names}.", "主要事件有{names}。"),
    "answer.further": ("Further:", "此外："),
    "mark.unverified": ("unverified", "未核实"),
}


def say(key: str, language: str, /, **values: Any) -> str:
    """Return a phrase in `en` or `zh`; `{n:one|many}` in it is the number n with the word that fits it.

    Raises:
        KeyError: there is no such phrase, or a value it needs is missing.
    """
    return worded(_PHRASES[key], is_chinese(language), values)
