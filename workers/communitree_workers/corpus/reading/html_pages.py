"""The visible text of an HTML page: blocks become paragraphs, items get a dash, lines of `<pre>` stay, indented."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

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


class _Visible:
    """What is to be seen of a tree, gathered as its elements open and close."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.pre = 0

    def opens(self, tag: str) -> None:
        if tag == "pre":
            self.pre += 1
        if tag == "br":
            self.parts.append("\n")
        elif tag in ("td", "th"):
            self.parts.append(" ")
        elif tag in _BLOCKS:
            self._apart(tag)
            if tag == "li":
                self.parts.append("- ")

    def closes(self, tag: str) -> None:
        if tag == "pre":
            self.pre -= 1
        if tag in _BLOCKS and tag not in ("td", "th"):
            self._apart(tag)

    def _apart(self, tag: str) -> None:
        if tag not in _LINES:
            self.parts.append("\n\n")
        elif not self.parts or not self.parts[-1].endswith("\n"):
            self.parts.append("\n")

    def text(self, data: str) -> None:
        if self.pre:
            data = data.replace("\n", "\n" + _INDENT)
            if not self.parts or self.parts[-1].endswith("\n"):
                data = _INDENT + data
        else:
            data = _SPACE.sub(" ", data)
            if not self.parts or self.parts[-1].endswith("\n"):
                data = data.lstrip(" ")
        if data:
            self.parts.append(data)


def html_to_text(html: str) -> str:
    """Return the visible text of a page; broken markup is repaired by the rules that browsers follow."""
    visible = _Visible()
    _walk(LexborHTMLParser(html).root, visible)
    text = "".join(visible.parts)
    text = "\n".join(line.rstrip(" \t") for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _walk(root: LexborNode | None, visible: _Visible) -> None:
    """Go through a tree without recursion: hostile pages nest as deep as they are long."""
    node, open_tags = root, list[tuple[LexborNode, str]]()
    while node is not None:
        tag = node.tag or ""
        below = None
        if tag == "-text":
            visible.text(node.text_content or "")
        elif tag not in _HIDDEN:
            visible.opens(tag)
            below = node.child
            if below is not None:
                open_tags.append((node, tag))
                node = below
                continue
            visible.closes(tag)
        following = node.next if node is not root else None
        while following is None and open_tags:
            above, tag = open_tags.pop()
            visible.closes(tag)
            following = above.next if open_tags else None
        node = following
