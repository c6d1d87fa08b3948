"""The visible text of an HTML page: blocks become paragraphs, items get a dash, lines of `<pre>` stay, indented."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_HIDDEN = frozenset({"script", "style", "noscript", "template", "head", "svg", "math", "nav", "iframe", "object"})
_BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "caption", "dd", "details", "dialog", "div", "dl", "dt", "fieldset"}
    | {"figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "ol"}
    | {"p", "pre", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "title", "tr", "ul"}
)
#: A new line is enough for these; other blocks are set apart by an empty line.
_LINES = frozenset({"li", "tr", "dt", "dd"})
#: In front of each line of `<pre>`: what of it is code is told from its lines, see `markup`.
_INDENT = "    "
_SPACE = re.compile(r"[ \t\r\n\f]+")


class _Visible(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.hidden: list[str] = []
        self.pre = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN:
            self.hidden.append(tag)
        elif tag == "body":  # a page that never closes its head
            self.hidden.clear()
        if self.hidden:
            return
        if tag == "pre":
            self.pre += 1
        if tag == "br":
            self.parts.append("\n")
        elif tag in ("td", "th"):
            self.parts.append(" ")
        elif tag in _BLOCKS:
            self.parts.append("\n" if tag in _LINES else "\n\n")
            if tag == "li":
                self.parts.append("- ")

    def handle_endtag(self, tag: str) -> None:
        if self.hidden:
            if tag in self.hidden:
                while self.hidden.pop() != tag:
                    pass
            return
        if tag == "pre" and self.pre:
            self.pre -= 1
        if tag in _BLOCKS and tag not in ("td", "th"):
            self.parts.append("\n" if tag in _LINES else "\n\n")

    def handle_data(self, data: str) -> None:
        if self.hidden:
            return
        if self.pre:
            data = data.replace("\n", "\n" + _INDENT)
            if not self.parts or self.parts[-1].endswith("\n"):
                data = _INDENT + data
        else:
            data = _SPACE.sub(" ", data)
            if not self.parts or self.parts[-1].endswith("\n"):
                data = data.lstrip(" ")
        self.parts.append(data)


def html_to_text(html: str) -> str:
    """Return the visible text of a page; broken markup gives what browsers would show, roughly."""
    parser = _Visible()
    parser.feed(html)
    parser.close()
    text = "".join(parser.parts)
    text = "\n".join(line.rstrip(" \t") for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", text).strip()
