"""The words around an answer and its account, in English and Chinese."""

from __future__ import annotations

from typing import Any

from communitree_shared.wording import worded

_WORDS: dict[str, tuple[str, str]] = {
    # states
    "status.answered": ("answered", "已回答"),
    "status.partial": ("partial", "部分回答"),
    "status.no_data": ("no_data", "没有相关内容"),
    "status.failed": ("failed", "失败"),
    "status.cancelled": ("cancelled", "已取消"),
    "job": ("job {job}", "任务 {job}"),
    "known": (
        "known: asked before on the same version, so it cost nothing; the account is of that time",
        "已知：同一版本上问过，因此没有花费；以下为当时的账目",
    ),
    "understood": ("understood as: {question}", "理解为：{question}"),
    # citations
    "citations": ("Citations", "引用"),
    "legend": ("✓: the text of what is cited says so", "✓：所引内容的原文如此说"),
    "grade.related": ("related", "相关"),
    "grade.unsupported": ("not supported", "无依据"),
    "grade.unknown": ("unknown", "查无此项"),
    "citation.level": ("level {level}", "第 {level} 层"),
    "citation.units": ("{n:text unit|text units} in {documents}", "{n:,} 个文本单元，见 {documents}"),
    "more": ("and {n:,} more", "另有 {n:,} 条"),
    "kind.reports": ("report", "报告"),
    "kind.sources": ("source", "来源"),
    "kind.entities": ("entity", "实体"),
    "kind.relationships": ("relationship", "关系"),
    "kind.claims": ("claim", "断言"),
    # points
    "points": ("Points", "要点"),
    "point": ("score {score:g}, batch {batch}", "{score:g} 分，第 {batch} 批"),
    "point.reports": (", reports {reports}", "，报告 {reports}"),
    "point.in_answer": ("in the answer", "已写入答案"),
    "point.named": ("only named in the answer", "答案只提到名目"),
    "point.used": ("used", "已采用"),
    "point.not_used": ("not used", "未采用"),
    # the account
    "read.reports": (
        "{did} {n:report|reports}, {tokens:token|tokens}{levels}",
        "{did} {n:,} 份报告，{tokens:,} 个词元{levels}",
    ),
    "read.texts": (
        "{did} {n:text unit|text units}, {tokens:token|tokens}{levels}",
        "{did} {n:,} 个文本单元，{tokens:,} 个词元{levels}",
    ),
    "did.read": ("read", "读取"),
    "did.chose": ("chose", "选出"),
    "level": ("level {level}: {n:,}", "第 {level} 层 {n:,} 份"),
    "picks": (
        "{n:report was picked|reports were picked} for the question's words, beside the cut{why}: {reports}",
        "另按问题中的词选出 {n:,} 份报告，不计入这一刀{why}：{reports}",
    ),
    "picks.why": (" ({why})", "（{why}）"),
    "finest": (
        "{n:of these is a leaf|of these are leaves} on a coarser level than {level}: nothing finer is below",
        "其中 {n:,} 份是比第 {level} 层更粗的层上的叶子：其下没有更细的报告",
    ),
    "selection": ("selection {strategy}", "选择方式 {strategy}"),
    "out.pruned": ("pruned as irrelevant", "因不相关而剪去"),
    "out.budget": ("left out for the budget", "因预算而未读"),
    "out.budget_or_rank": ("left out for the budget or their rank", "因预算或评级而未读"),
    "out.rank": ("left out for their rank", "因评级而未读"),
    "out": (
        "{why}: {n:community|communities} (in nothing that is read: {units:text unit|text units}, "
        "{entities} of entities)",
        "{why}：{n:,} 个社区（其中 {units:,} 个文本单元、{entities} 的实体不在所读内容里）",
    ),
    "covers": (
        "covers {entities} of entities; {assigned} of text units are assigned to what was read, "
        "rows or text of {read} stand in it",
        "覆盖 {entities} 的实体；{assigned} 的文本单元归属所读内容，{read} 的行或正文在其中出现",
    ),
    "batches": ("batches: {answered:,} of {total:,} answered", "批次：{total:,} 批中 {answered:,} 批有回复"),
    "batch.empty": ("{n:,} found nothing", "{n:,} 批没有发现"),
    "batch.failed": ("{n:,} failed", "{n:,} 批失败"),
    "batch.retried": ("{n:,} tried again", "{n:,} 批重试过"),
    "batch.split": ("{n:,} split", "{n:,} 批被拆开"),
    "batch.at_limit": ("{n:,} at their word limit", "{n:,} 批达到字数上限"),
    "batch.cached": ("{n:,} from cache", "{n:,} 批取自缓存"),
    "points.sum": (
        "points: {produced:,} = {used:,} used + {duplicate:,} duplicate + {zero:,} irrelevant + {dropped:,} dropped; "
        "{in_answer:,} in the answer{others}",
        "要点：{produced:,} = 采用 {used:,} + 重复 {duplicate:,} + 无关 {zero:,} + 未能采用 {dropped:,}；"
        "写入答案 {in_answer:,}{others}",
    ),
    "points.named": (", {n:,} named", "，只提到名目 {n:,}"),
    "points.unknown": (", {n:,} cannot be told", "，无法判定 {n:,}"),
    "points.condensed": (", {n:,} condensed away", "，归纳时略去 {n:,}"),
    "cited": (
        "citations in the answer: {total:,} = {supported:,} supported + {related:,} related + "
        "{unsupported:,} not supported + {unknown:,} unknown{unread}",
        "答案中的引用：{total:,} = 有依据 {supported:,} + 相关 {related:,} + 无依据 {unsupported:,} + "
        "查无此项 {unknown:,}{unread}",
    ),
    "cited.unread": ("; {n:,} not understood", "；无法辨认 {n:,}"),
    "cite.reports": ("points cite {cited:,} of {n:report|reports}", "要点引用了 {n:,} 份报告中的 {cited:,} 份"),
    "cite.texts": (
        "points cite {cited:,} of {n:text unit|text units}",
        "要点引用了 {n:,} 个文本单元中的 {cited:,} 个",
    ),
    "silent": ("; silent (no point cites them): {ids}", "；没有要点引用的：{ids}"),
    "unread": ("; not read: {ids}", "；未能读取的：{ids}"),
    "unread.because": ("report {id}: {cause}", "报告 {id}：{cause}"),
    "endings": ("replies that did not end as they should: {inner}", "未正常结束的回复：{inner}"),
    "ending": ("{name} {n:,}", "{name} {n:,} 次"),
    "calls": (
        "{calls:call|calls}{models}, {cached:,} from cache, {tokens:,} tokens, {usd}; {time}",
        "模型调用 {calls:,} 次{models}，取自缓存 {cached:,} 次，{tokens:,} 个词元，{usd}；{time}",
    ),
    "calls.to": (" to {models}", "（{models}）"),
    "calls.none": ("no model call{models}; {time}", "没有调用模型{models}；{time}"),
    "calls.none_by": (" ({models})", "（{models}）"),
    "usd.unknown": ("price unknown", "价格未知"),
    # plans
    "plan.cost": (
        "{most}{batches:batch|batches}{calls}, {tokens:,} prompt tokens, {usd}",
        "{most}{batches:,} 批{calls}，{tokens:,} 个提示词元，{usd}",
    ),
    "plan.table": ("{corpus}: what each selection would read", "{corpus}：每种选择方式会读取什么"),
    "plan.columns": (
        "selection|reports|batches|rating calls|tokens|cost|entities|assigned|read|why",
        "选择方式|报告|批次|评分调用|词元|费用|实体|归属|读到|原因",
    ),
    "plan.most": ("at most ", "至多 "),
    "plan.calls": (", {n:rating call|rating calls}", "，{n:,} 次评分调用"),
    "plan.covers": (
        "covers {entities} of entities; {assigned} of text units assigned, rows or text of {read} stand in it",
        "覆盖 {entities} 的实体；{assigned} 的文本单元归属其中，{read} 的行或正文在其中出现",
    ),
    # between the parts of a list, and of a sentence
    "comma": (", ", "，"),
    "colon": (": ", "："),
    "semicolon": ("; ", "；"),
    "brackets": (" ({inner})", "（{inner}）"),
}


def say(key: str, chinese: bool, /, **values: Any) -> str:
    """Return a phrase; see `worded`.

    Raises:
        KeyError: there is no such phrase, or a value it needs is missing.
    """
    return worded(_WORDS[key], chinese, values)
