"""How the provider behaves: speed, faults, limits, what it accepts. Every draw depends on the seed and the prompt."""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from dataclasses import dataclass, field
from statistics import NormalDist

from support.fake_provider.habits import HABITS, Habit


@dataclass
class Behaviour:
    """Rates are shares of the calls (0–1); times are seconds. All zero: a quick and faultless provider."""

    seed: int = 1
    # speed
    latency: float = 0.0
    latency_sigma: float = 0.0  # > 0: log-normal around `latency` as the median
    tokens_per_second: float = 0.0
    pieces: int = 12  # of a stream
    # content
    points: int = 0  # of a map reply; 0: one for each row
    words: int = 60  # of a plain text
    planted: str = ""  # a pattern: a map reply has the statements that match it and no others, and so has a text
    obey_words: bool = False  # keep to the word limit the prompt names, and drop what does not fit
    rating: int = -1  # >= 0: every rating
    reply: str = ""  # set: every reply
    # faults
    error_rate: float = 0.0
    error_status: int = 500
    error_words: str = "The server had an error while processing your request."
    rate_429: float = 0.0
    retry_after: float = 0.0  # 0: no header
    retry_after_as_date: bool = False
    malformed_rate: float = 0.0
    malformed_kind: str = ""  # one of content.SPOILERS; "": all in turn
    cut_rate: float = 0.0  # cut off, finish_reason length
    fault_kinds: tuple[str, ...] = ()  # the kinds of prompts that the rates of faults are for; none: all
    hang_rate: float = 0.0
    drop_rate: float = 0.0  # the connection is closed in the middle of the reply
    break_first: int = 0  # the first n streams for a prompt break off in the middle
    fail_first: int = 0  # the first n requests for a prompt fail with error_status
    away_until: float = 0.0  # monotonic time until which every request fails
    # what it accepts
    formats: tuple[str, ...] = ("json_schema", "json_object", "text")
    format_status: int = 400
    format_words: str = "Invalid value: 'response_format' of this type is not supported with this model."
    refused: tuple[str, ...] = ()  # body fields answered with 400
    refused_text: str = ""  # a pattern: extraction prompts that match it are always answered with 400
    context_tokens: int = 0
    api_key: str = ""  # set: any other is a 401 that echoes the one sent
    max_in_flight: int = 0  # more are answered with 429
    requests_per_minute: int = 0  # more in any minute are answered with 429
    stream_usage: bool = True
    usage: bool = True
    cached_share: float = 0.0  # of prompt tokens
    # what real endpoints are in the habit of doing
    habit: str = ""  # a name of habits.HABITS
    habit_kinds: tuple[str, ...] = ()  # the kinds of prompts that it touches; none: all
    habit_match: str = ""  # a pattern: only prompts that match it
    habit_first: int = 0  # only the first n requests that it touches; 0: all
    habit_limit: int = 2500  # tokens above which a prompt is too long, or cut

    def habit_of(self, kind: str, prompt: str, tokens: int, touched: int) -> Habit | None:
        """Return the habit that touches a request; `touched`: how many it touched before."""
        found = HABITS[self.habit] if self.habit else None
        if found is None or (self.habit_kinds and kind not in self.habit_kinds):
            return None
        if (self.habit_match and not re.search(self.habit_match, prompt)) or 0 < self.habit_first <= touched:
            return None
        longer = tokens > self.habit_limit
        return found if longer or not (found.above or found.special == "truncates") else None

    def draw(self, key: bytes, what: str) -> float:
        """Return a number in [0, 1) that depends on seed, key and purpose only."""
        digest = hashlib.blake2b(key + what.encode(), key=str(self.seed).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") / 2**64

    def seconds(self, key: bytes, tokens: int) -> float:
        """Return how long a reply takes."""
        base = self.latency
        if base and self.latency_sigma:
            base *= math.exp(self.latency_sigma * NormalDist().inv_cdf(min(0.999, max(0.001, self.draw(key, "time")))))
        return base + (tokens / self.tokens_per_second if self.tokens_per_second else 0.0)

    def outcome(self, key: bytes) -> str:
        """Return what becomes of a request: "ok" or a fault."""
        roll = self.draw(key, "fault")
        for name in ("error", "429", "hang", "drop", "cut", "malformed"):
            rate = self.rate_429 if name == "429" else getattr(self, f"{name}_rate")
            if roll < rate:
                return name
            roll -= rate
        return "ok"


@dataclass
class Counters:
    """What the provider has seen since the last reset."""

    requests: int = 0
    streams: int = 0
    in_flight: int = 0
    peak_in_flight: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    repeated_prompts: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, int] = field(default_factory=dict)
    formats: dict[str, int] = field(default_factory=dict)
    starts: list[float] = field(default_factory=list)  # monotonic seconds of each request's arrival

    def most_within(self, seconds: float) -> int:
        """Return the most requests that arrived within any stretch of so many seconds."""
        most = first = 0
        for index, start in enumerate(self.starts):
            while start - self.starts[first] >= seconds:
                first += 1
            most = max(most, index - first + 1)
        return most

    def longest_gap(self) -> float:
        """Return the longest time between two arrivals."""
        return max((b - a for a, b in itertools.pairwise(self.starts)), default=0.0)
