"""What a failed try means, by its status and its provider's words.

Providers word the same refusal in dozens of ways, and change them. So no phrases are looked up but signs: too long is
what speaks of the prompt (tokens, context, input …) and of too much (exceeds, longer than, maximum …, two numbers).
"""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[_`'\"*]+")
#: What limits the reply and not the prompt: a fault of ours in these is no long prompt.
_OF_THE_OUTPUT = re.compile(
    r"\b(?:max|maximum) ?(?:completion |new |output |generated )?tokens\b|\bmaxoutputtokens\b"
    r"|\b(?:completion|output|new|generated|reasoning|thinking|budget) tokens\b"
    # a validator's words for any field, and its list of them
    r"|\b(?:input|string) should (?:be|have|match)\b|\binput ?:"
)
#: Parameters that have limits of their own; whoever names one speaks of it.
_OTHER_PARAMETER = re.compile(
    r"\b(?:stop|seed|temperature|top ?p|top ?k|top ?logprobs|logprobs|n|response format|json schema|schema|tools?"
    r"|functions?|metadata|user|prompt cache key|logit bias|(?:presence|frequency) penalty)\b"
    r".{0,30}?(?:\b(?:array|string|value|must|should|is|are|exceed|too|above|below|at most|limit|range|depth"
    r"|max)|[:：])"
)

_PROMPT = re.compile(
    r"context|tokens?(?![a-z])|prompts?\b|inputs?\b|messages?\b|sequence|seq ?len|model ?len|window"
    r"|request (?:is |body |"
    r"entity )?(?:too|size)|characters?|payload|length|n ?ctx"
    r"|上下文|提示词?|输入|文本|字符|长度|消息|请求(?:体|内容)|内容过?长"
)
#: Says by itself that something is too much.
_TOO_MUCH = re.compile(
    r"exceed|too (?:long|large|big|many)|(?:longer|larger|greater|bigger|more) than|over(?:flow|flows|sized?)\b"
    r"|(?:out|run out) of context|not enough (?:room|context|space)|no smaller than|reduce|shorten|truncat"
    r"|larger context|limit reached|length only|only \d+ tokens"
    r"|超过|超出|超长|过长|超限|太长|过大|大于|超额"
)
#: Names a limit; with words that are the prompt's alone.
_LIMIT = re.compile(
    r"max(?:imum|imal)?\b|limit|less than|at most|up to|<=?|≤|must (?:be|have|not)|cannot|should be \[|range of"
    r"|between"
    r"|不能|不得|最大|最长|最多|上限|限制|范围"
)
_PROMPT_ALONE = re.compile(
    r"context|prompt (?:tokens?|length|size)|(?:input|prompt|message|text)s? ?(?:tokens?|length|size"
    r"|characters?)|tokens?"
    r"(?![a-z])|input characters?|(?:length|size) of (?:the )?(?:messages?|prompt|input|content)|model len"
    r"|seq ?len|sequence|window|上下文|输入|提示词?|token"
)
_NUMBER = re.compile(r"(?<![\w.])\d{1,3}(?:[,_]\d{3})+|\d{3,}")

_RATE = re.compile(
    r"rate.?limit|too many requests|requests? per|tokens? per|per (?:minute|second|hour|day|month|min)\b"
    r"|\b[rt]p[msd]\b"
    r"|\bqps\b|throttl|quota|concurren|slow down|try again (?:later|in)|overloaded|limit for (?:the day|today)"
    r"|daily|monthly|限流|频率|频次|速率|并发|每分钟|每秒|请求过多|请求过于频繁|过于频繁|稍后(?:再试|重试)|流控|配额"
)
_LIMIT_NUMBER = re.compile(r"limit:? *(?:of )?(\d[\d,_]*)")
_ASKED_NUMBER = re.compile(r"requested:? *(?:about |an estimated )?(\d[\d,_]*)")
#: Money or a plan, which no waiting brings back within a job.
_NO_MONEY = (
    "insufficient quota", "insufficient_quota", "billing", "insufficient balance", "insufficient credit", "余额不足",
    "欠费", "credit balance", "payment required",
)  # fmt: skip

_FILTERED = re.compile(
    r"content.?(?:exists risk|filter|management polic|polic|safety|moderation)|responsible ?ai|data ?inspection"
    r"|moderation|flagged"
    r"|safety (?:system|filter|setting|polic|reason)|inappropriate|prohibited|(?:unsafe|harmful|sensitive|toxic) "
    r"(?:content|word|or|output|input)|new ?sensitive|usage polic|blocked by"
    r"|敏感(?:词|内容|信息|或)?|违规|不合规|不安全|不当内容|内容安全|内容审核|审核未通过"
)
_NO_SYSTEM = re.compile(
    r"(?:system|developer)[ :]*(?:role|message|prompt|instruction)s?.{0,60}(?:not |n't |un)(?:\w+ )?(?:support"
    r"|allow|enabl|"
    r"accept|permit)|(?:not |n't |un)support\w* .{0,20}(?:system|developer) (?:role|message|prompt|instruction)"
    r"|only user and assistant roles|roles? must alternate|(?:invalid|unexpected|unknown"
    r"|unsupported) role:? *(?:system|"
    r"developer)|不支持.{0,6}(?:system|系统)|(?:system|系统)(?:角色|消息|提示词?)?.{0,4}不支持"
)
_ONLY_STREAM = re.compile(
    r"only (?:\w+ )?(?:supports? |available (?:in|with|for) |accepts? )?(?:the )?stream"
    r"|stream(?:ing)? (?:mode )?(?:is required|only|must)"
    r"|non.?stream\w* .{0,30}(?:not |un)support|(?:enable|set) (?:the )?stream|仅支持流|只支持流|仅限流|必须.{0,4}流式"
)
_NO_STREAM = re.compile(
    r"stream(?:ing)?(?! ?options)\b.{0,40}(?:not |n't |un)support|(?:not |n't "
    r"|un)support\w* (?:value: )?stream(?:ing)?(?! ?opt)"
    r"|不支持流式"
)
_NO_MODEL = re.compile(
    r"model.{0,60}(?:not (?:found|exist|loaded|available)|does not exist|doesn't exist)|(?:no|unknown"
    r"|invalid) (?:such )?"
    r"models?\b|模型.{0,12}不存在"
)
#: LM Studio's 200 to an address that it does not serve, and what others say to one.
_NO_ADDRESS = re.compile(
    r"unexpected endpoint|no route|cannot post|unknown (?:request )?url|invalid url|page not found"
)


class CallFailed(Exception):
    """One try of a call failed; never leaves this package. `status` None: no answer came at all."""

    def __init__(
        self,
        words: str,
        *,
        status: int | None = None,
        code: str = "",
        retry_after: float | None = None,
        counts: tuple[int, int, int] | None = None,
        reason: str = "",
    ) -> None:
        super().__init__(words)
        self.words = words
        self.status = status
        self.code = code
        self.retry_after = retry_after
        self.counts = counts  # tokens that were paid for all the same
        self.reason = reason  # the `finish_reason` of a reply that ended so

    @property
    def text(self) -> str:
        """The provider's words and code, in lower case, for looking things up in."""
        return f"{self.words} {self.code}".lower()

    @property
    def _signs(self) -> str:
        return " ".join(_PLAIN.sub(" ", self.text).split())

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later: no answer, 408, 409, 425, a rate limit, 5xx."""
        if self.status is None:
            return True
        if self.no_money or self.too_long:
            return False
        if self.rate_limited or self.status in (408, 409, 425):
            return True
        return self.status >= 500 and self.status not in (501, 505) and not self.no_address

    @property
    def no_money(self) -> bool:
        """Whether an account is empty."""
        return self.status == 402 or any(sign in self.text for sign in _NO_MONEY)

    @property
    def too_long(self) -> bool:
        """Whether the prompt is longer than the model takes, or than any minute's quota."""
        if self.status == 413:
            return True
        if self.status not in (400, 406, 422, 429) and not (self.status or 0) >= 500:
            return False
        signs = self._signs
        asked, limit = _ASKED_NUMBER.search(signs), _LIMIT_NUMBER.search(signs)
        if asked and limit and _RATE.search(signs):
            return _integer(asked[1]) > _integer(limit[1])
        return self.status != 429 and not _RATE.search(signs) and not self.filtered and too_long(signs)

    @property
    def rate_limited(self) -> bool:
        """Whether the provider asks for fewer calls: by its words, whatever its status."""
        if self.no_money or self.too_long:
            return False
        if self.status == 429 or (self.status == 503 and self.retry_after is not None):
            return True
        return self.status in (400, 403, 500, 503) and bool(_RATE.search(self._signs))

    @property
    def filtered(self) -> bool:
        """Whether a filter refused the prompt or the reply."""
        return self.status in (400, 403, 422, 451, 500) and bool(_FILTERED.search(self._signs))

    @property
    def no_system(self) -> bool:
        """Whether the model takes no system message."""
        return self.status in (400, 422, 500, 501) and bool(_NO_SYSTEM.search(self._signs))

    @property
    def only_stream(self) -> bool:
        """Whether the model answers in streams only."""
        return self.status in (400, 422, 501) and bool(_ONLY_STREAM.search(self._signs))

    @property
    def no_stream(self) -> bool:
        """Whether the model does not stream."""
        return self.status in (400, 422, 501) and not self.only_stream and bool(_NO_STREAM.search(self._signs))

    @property
    def no_model(self) -> bool:
        """Whether the endpoint does not know the model."""
        return self.status in (400, 403, 404, 500) and bool(_NO_MODEL.search(self._signs))

    @property
    def no_address(self) -> bool:
        """Whether the address is none that the server answers."""
        return self.status == 405 or bool(_NO_ADDRESS.search(self._signs))

    @property
    def unexplained(self) -> bool:
        """Whether the provider refuses this request and does not say why in words that are known."""
        known = self.too_long or self.filtered or self.no_money or self.rate_limited or self.no_model
        return self.status in (400, 406, 422) and not known

    def describe(self) -> str:
        """Return a sentence: the status and the provider's words."""
        return f"HTTP {self.status}: {self.words}" if self.status else self.words


def too_long(words: str) -> bool:
    """Whether words (in lower case, without underscores) say that a prompt is too long: by two signs."""
    signs = _OF_THE_OUTPUT.sub(" ", words)
    if _OTHER_PARAMETER.search(signs) and not re.search(r"context|prompt (?:is|too)|messages?\b.{0,20}content", signs):
        return False
    if not _PROMPT.search(signs):
        return False
    if _TOO_MUCH.search(signs):
        return True
    if not _PROMPT_ALONE.search(signs):
        return False
    numbers = {_integer(n) for n in _NUMBER.findall(signs)}
    return bool(_LIMIT.search(signs)) or len(numbers) >= 2


def _integer(digits: str) -> int:
    return int(re.sub(r"\D", "", digits) or 0)
