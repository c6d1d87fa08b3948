"""Why something failed, in the language of the answer: known causes in words, a provider's own as a quotation."""

from __future__ import annotations

import re

from communitree_shared.languages import is_chinese
from communitree_shared.languages import language as language_of

#: Codes that stand for a cause that has no message.
_CODES = {
    "deadline": ("its deadline passed", "超过了期限"),
    "lost": ("its result is lost", "结果丢失了"),
    "poison": ("its worker died each time", "处理它的进程每次都中途退出"),
}
#: Messages as they are raised, and what they say in Chinese; groups are put in as they are.
_CHINESE = [
    (re.compile(pattern, re.DOTALL), words)
    for pattern, words in (
        (r"The model endpoint failed after (\d+) tries: (.*)", "模型端点在 {0} 次尝试后仍然出错：“{1}”"),
        (r"The model endpoint failed: (.*)", "模型端点出错：“{0}”"),
        (r"The deadline passed before the model answered.*The last try failed: (.*)",
         "模型答复之前已到期限；最后一次尝试出错：“{0}”"),
        (r"The deadline passed before the model answered.*", "模型答复之前已到期限"),
        (r"The prompt is longer than the model takes: (.*)", "提示词超过模型的上限：“{0}”"),
        (r"The prompt has about (\d+) tokens; '?(.*?)'? takes (\d+)",
         "提示词约有 {0} 个词元，而模型 {1} 最多接受 {2} 个"),
        (r"The reply of '?(.*?)'? reached its length limit before any text came",
         "模型 {0} 还没写出文字就达到了长度上限"),
        (r"The model's reply holds no JSON: (.*)", "模型的回复里没有 JSON：“{0}”"),
        (r"The provider refuses this content: (.*)", "模型服务方拒绝处理这些内容：“{0}”"),
        (r"The model refuses this content: (.*)", "模型拒绝处理这些内容：“{0}”"),
        (r"it ended with '(.*)'(?:, and so did its continuation)?", "模型的回复以“{0}”告终"),
        (r"the endpoint did not say that it ended(?:, and so did its continuation)?", "模型端点没有说明回复已写完"),
        (r"The reply of '?(.*?)'? was cut off after (\d+) tokens: .*", "模型 {0} 的回复在 {1} 个词元后中断"),
        (r"'?(.*?)'? read (\d+) tokens of a prompt of about (\d+): its server cuts what is longer than its context",
         "模型 {0} 只读了约 {2} 个词元的提示词中的 {1} 个：服务器截去了超出上下文的部分"),
        (r"The model's reply is empty", "模型的回复是空的"),
        (r"The model's reply holds no points: (.*)", "模型的回复里没有要点：“{0}”"),
        (r"The job's budget does not allow another call \((.*) spent\)", "任务的预算不够再调用一次（已用 {0}）"),
        (r"The job was cancelled", "任务已取消"),
        (r"its worker process ran out of memory.*", "处理它的进程内存不足"),
        (r"its worker process was killed.*", "处理它的进程被强行终止（多半是内存不足）"),
        (r"its worker died each time", "处理它的进程每次都中途退出"),
        (r"The model's reply holds no score that can be read", "模型的回复里没有可读的评分"),
        (r"The model condensed the points to nothing", "模型把要点归纳成了空白"),
    )
]  # fmt: skip


def cause_in(language: str, cause: str) -> str:
    """Return a cause in an answer's language, without a full stop; one that is not known as a quotation in Chinese."""
    bare = cause.rstrip(".。 ")
    chinese = is_chinese(language)
    if bare in _CODES:
        return _CODES[bare][chinese]
    if not chinese:
        return bare
    for pattern, words in _CHINESE:
        found = pattern.fullmatch(bare)
        if found:
            return words.format(*(group.strip(" .'\"") for group in found.groups()))
    return bare if not bare or language_of(bare) == "zh" else f"“{bare}”"
