"""A reply without the thinking that stands before it, whole or piece by piece.

Thinking counts where models put it: at the beginning of a reply, between marks of the table below, or before a closing
mark whose opening the server took away. The same marks inside prose, code or JSON are text that speaks of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Elements `<name>…</name>`, with or without attributes.
ELEMENTS = ("think", "thinking", "thought", "thoughts", "reasoning", "reflection", "scratchpad", "seed:think")

#: Opening → closing, for marks that are no elements.
MARKS = {
    "[THINK]": "[/THINK]",  # Magistral
    "◁think▷": "◁/think▷",  # Kimi
    "<|open|>think<|sep|>": "<|close|>think<|sep|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",  # Sky-T1, OpenThinker
    "<|START_THINKING|>": "<|END_THINKING|>",  # Command
    "<|thinking|>": "<|/thinking|>",
    "<|inner_prefix|>": "<|inner_suffix|>",  # Apertus
    "<|channel>thought": "<channel|>",  # Gemma
    "<unused94>thought": "<unused95>",  # MedGemma
    '<details type="reasoning"': "</details>",  # gateways
    "Here is my thought process:": "Here is my response:",  # Granite
    "Here's my thought process:": "Here's my response:",
}
#: Closing marks that are never opened.
CLOSING_ALONE = ("[BEGIN FINAL RESPONSE]",)
#: What is left of harmony where a server drops its special tokens: `analysisThe user …assistantfinalThe answer`.
BARE_CHANNEL, BARE_FINAL = "analysis", "assistantfinal"
#: Around the answer itself.
WRAPPERS = {
    "<answer>": "</answer>",
    "<|begin_of_solution|>": "<|end_of_solution|>",
    "<|START_RESPONSE|>": "<|END_RESPONSE|>",
    "<|START_TEXT|>": "<|END_TEXT|>",
    "[BEGIN FINAL RESPONSE]": "[END FINAL RESPONSE]",
}
#: Harmony: `<|start|>assistant<|channel|>NAME …<|message|>text<|end|>`; only the channel `final` is the reply.
HEADERS = ("<|channel|>", "<|start|>")
HEADER_END = "<|message|>"
_CHANNEL_ENDS = ("<|end|>", "<|return|>", *HEADERS)
_LONGEST_HEADER = 200
#: Marks of the end that some servers leave at the end of a text.
END_MARKS = ("<|return|>", "<|end|>", "<|im_end|>", "<|eot_id|>", "<|endoftext|>", "</s>", *WRAPPERS.values())

_ELEMENT = re.compile(r"<([a-z:]+)(?:\s[^<>]{0,80})?>", re.IGNORECASE)
_ELEMENT_BEGUN = re.compile(r"<([a-z:]*)(\s[^<>]{0,80})?", re.IGNORECASE)
#: What closes thinking, also where its opening was taken away.
CLOSINGS = (
    *(f"</{name}>" for name in ELEMENTS),
    *(close for close in MARKS.values() if close.startswith(("<", "[", "◁")) and close != "</details>"),
    *CLOSING_ALONE,
)
_FIRST = "".join(sorted({mark[0] for mark in (*CLOSINGS, *END_MARKS)}))
_STARTS = re.compile(f"[{re.escape(_FIRST)}]")
_STARTS_BARE = re.compile(f"[{re.escape(_FIRST)}]|{BARE_FINAL[0]}")
_LONGEST = max(map(len, (*CLOSINGS, *END_MARKS, *MARKS, *WRAPPERS)))
_QUOTES_BEFORE, _QUOTES_AFTER = "`\"'“‘「『《«", "`\"'”’」』》»"
_SENTENCE_ENDS = ".!?。！？…:：)）"
_FENCE = re.compile(r"^\s{0,3}(?:```|~~~)", re.MULTILINE)
_JSON_BEGINS = re.compile(r"\s*(?:[{\[｛【]|```)")


@dataclass(frozen=True, slots=True)
class Spoken:
    """A reply's text without its thinking. `thought`: some was taken off. `unfinished`: it never came to an end."""

    text: str
    thought: bool = False
    unfinished: bool = False


def spoken(raw: str, *, json: bool = False) -> Spoken:
    """Return what a whole reply says. `json`: it is JSON, whose texts may hold anything; see `Ear`."""
    ear = Ear(json=json)
    ear.hear(raw)
    return ear.close()


class Ear:
    """Hears a reply in pieces and gives out what may be told: all but what may be the beginning of a mark.

    A closing mark that was never opened shows that all before it was thinking: `hear` then sets `restarted`, and what
    it gave out before is void. Not where a reply is `json`: what such a mark means there is told by who reads it.
    """

    def __init__(self, *, json: bool = False) -> None:
        self._json = json
        self._rest = ""  # heard, and neither told nor dropped
        self._told: list[str] = []
        self._closes: tuple[str, ...] = ()  # while thinking: what ends it
        self._begun = False  # the text has begun
        self._bare = False  # it begins as harmony without its special tokens
        self._final = False
        self.thought = False
        self.restarted = False

    def hear(self, piece: str) -> str:
        """Take the next piece; return what may be told now."""
        self.restarted = False
        self._rest += piece
        return self._step()

    def close(self) -> Spoken:
        """Take the end of the reply; what was still held back is in the text only."""
        self._final = True
        self._step()
        return Spoken("".join(self._told), self.thought, bool(self._closes))

    def _step(self) -> str:
        out: list[str] = []
        while self._rest and self._turn(out):
            pass
        return "".join(out)

    def _turn(self, out: list[str]) -> bool:
        """Go on by one mark or stretch of text; False when more must be heard first."""
        if self._closes:
            return self._think()
        if not self._begun:
            return self._begin()
        return self._speak(out)

    # -- before the text

    def _begin(self) -> bool:
        self._rest = self._rest.lstrip()
        rest = self._rest
        if not rest:
            return False
        opened = self._opening(rest)
        if opened is not None:
            size, closes = opened
            self._rest, self._closes = rest[size:], closes
            self.thought = self.thought or bool(closes)
            return True
        if not self._final and self._may_open(rest):
            return False
        self._begun = True
        self._bare = rest.startswith(BARE_CHANNEL)
        return True

    @staticmethod
    def _opening(rest: str) -> tuple[int, tuple[str, ...]] | None:
        """The length of what opens a text, and what closes it; nothing closes what is dropped alone."""
        element = _ELEMENT.match(rest)
        if element is not None and element[1].lower() in ELEMENTS:
            return element.end(), (f"</{element[1].lower()}>",)
        folded = rest[:_LONGEST].lower()
        for mark, close in MARKS.items():
            if folded.startswith(mark.lower()):
                return len(mark), (close,)
        for mark in WRAPPERS:
            if folded.startswith(mark.lower()):
                return len(mark), ()
        if rest.startswith(HEADERS):
            end = rest.find(HEADER_END, 0, _LONGEST_HEADER)
            if end >= 0:
                header = rest[:end]
                aside = HEADERS[0] in header and "final" not in header
                return end + len(HEADER_END), _CHANNEL_ENDS if aside else ()
        if rest.startswith(_CHANNEL_ENDS[:2]):
            return rest.index(">") + 1, ()
        return None

    @staticmethod
    def _may_open(rest: str) -> bool:
        """Whether more text could make this the opening of something."""
        begun = _ELEMENT_BEGUN.fullmatch(rest)
        if begun is not None:
            name = begun[1].lower()
            if name in ELEMENTS or (not begun[2] and any(known.startswith(name) for known in ELEMENTS)):
                return True
        if rest.startswith(HEADERS):
            return len(rest) < _LONGEST_HEADER
        folded = rest.lower()
        marks = (*MARKS, *WRAPPERS, *_CHANNEL_ENDS, BARE_CHANNEL)
        return any(mark.lower().startswith(folded) for mark in marks)

    # -- thinking

    def _think(self) -> bool:
        """Drop thinking up to what closes it, which is not where the thinking quotes that mark."""
        folded, found, seen = self._rest.lower(), [], 0
        for mark in self._closes:
            at = folded.find(mark.lower())
            while at >= 0 and _quoted(self._rest, at, at + len(mark)):
                seen = max(seen, at + len(mark))
                at = folded.find(mark.lower(), at + 1)
            if at >= 0:
                found.append((at, mark))
        if not found:
            self._rest = self._rest[max(seen, len(self._rest) - max(map(len, self._closes))) :]
            return False
        at, mark = min(found)
        if not self._final and at + len(mark) == len(self._rest):
            return False  # a quote may follow
        self._rest = self._rest[at + (0 if mark in HEADERS else len(mark)) :]
        self._closes = ()
        return True

    # -- the text

    def _speak(self, out: list[str]) -> bool:
        """Tell text up to what may be a mark."""
        match = (_STARTS_BARE if self._bare else _STARTS).search(self._rest)
        if match is None:
            self._tell(self._rest, out)
            self._rest = ""
            return False
        at = match.start()
        self._tell(self._rest[:at], out)
        self._rest = rest = self._rest[at:]
        folded = rest[:_LONGEST].lower()
        end = next((mark for mark in END_MARKS if folded.startswith(mark.lower())), None)
        if end is not None:
            after = rest[len(end) :].lstrip()
            if not after or after.lower().startswith(tuple(mark.lower() for mark in END_MARKS)):
                if self._final:
                    self._rest = after
                return self._final
            if not self._final and any(mark.lower().startswith(after.lower()) for mark in END_MARKS):
                return False
        closings = (*CLOSINGS, BARE_FINAL) if self._bare else CLOSINGS
        closing = next((mark for mark in closings if folded.startswith(mark.lower())), None)
        if closing is not None:
            if not self._final and not rest[len(closing) :]:
                return False
            if not self._json and self._ends_thinking(rest[len(closing) :], closing):
                self._told.clear()
                out.clear()
                self.restarted = self.thought = True
                self._rest, self._begun = rest[len(closing) :], False
                return True
        elif not self._final and any(mark.lower().startswith(folded) for mark in (*closings, *END_MARKS)):
            return False
        self._tell(rest[:1], out)
        self._rest = rest[1:]
        return True

    def _tell(self, text: str, out: list[str]) -> None:
        if text:
            self._told.append(text)
            out.append(text)

    def _ends_thinking(self, after: str, mark: str) -> bool:
        """Whether a closing mark that was never opened ends thinking, and is not text that speaks of it."""
        before = "".join(self._told)
        if _quoted(before + mark + after[:1], len(before), len(before) + len(mark)):
            return False
        if _JSON_BEGINS.match(before) or len(_FENCE.findall(before)) % 2:
            return False
        if mark == BARE_FINAL:
            return True
        if mark.startswith("</") and f"<{mark[2:]}" in before.lower():
            return False  # a pair that the text shows
        line = before[before.rfind("\n") + 1 :].rstrip(" \t")
        ends_line = not after or after[0] in "\r\n"
        if not line:
            return ends_line or not after[0].isspace()
        return line[-1] in _SENTENCE_ENDS


def _quoted(text: str, start: int, end: int) -> bool:
    """Whether quotes or back-ticks stand around a mark."""
    before, after = text[start - 1 : start], text[end : end + 1]
    return bool(before and before in _QUOTES_BEFORE and after and after in _QUOTES_AFTER)
