"""The marks of JSON as models write them, and the patterns that tell structure from text."""

from __future__ import annotations

import re

#: Quote → the quotes that may end a string it began. Plain ASCII quotes end only themselves.
QUOTES = {
    '"': '"', "'": "'", "“": "”“\"", "”": "”\"", "‘": "’‘'", "’": "’'", "＂": "＂\"", "＇": "＇'", "「": "」",
    "『": "』", "`": "`", "«": "»", "„": "“”\"",
}  # fmt: skip
ANY_CLOSER = "\"'”“’‘＂＇」』`»"
OPEN = {"{": "}", "｛": "}", "[": "]", "［": "]", "【": "]"}
CLOSE = {"}": "}", "｝": "}", "]": "]", "］": "]", "】": "]"}
COMMAS = ",，、;；"
COLONS = ":：="
SPACE = " \t\r\n\f\v\u00a0\u3000\ufeff\u200b\u2028\u2029"

ANY_QUOTE = "\"'“”‘’＂＇「」『』`«»"
QUOTE_SET = "\"'“”‘’＂＇「『`«„"
AFTER_KEY = rf"[{SPACE}]*(?:[:：]|=>|(?=[-\d\[{{\"“]|true|false|null))"
QUOTED_KEY = (
    r"(?:\"(?:\\.|[^\"\\\n]){0,120}\"|'(?:\\.|[^'\\\n]){0,120}'"
    rf"|[{QUOTE_SET}][^\n{ANY_QUOTE}]{{0,120}}[{ANY_CLOSER}]){AFTER_KEY}"
)
#: `"key":` or `key:` or `key：`: what must follow a comma inside an object. A quoted key may lack its colon.
KEY = re.compile(rf"[{SPACE}]*(?:{QUOTED_KEY}|[^\W\d][\w \-]{{0,60}}[{SPACE}]*[:：])")
PROPER_KEY = re.compile(rf"\"(?:\\.|[^\"\\\n])*\"(?={AFTER_KEY})")
BARE_KEY = re.compile(rf"[^{COLONS}{COMMAS}{{}}\[\]\n]{{1,120}}")
#: A member of an object where an object's braces are missing; a string of a list may hold anything, so only whole ones.
BARE_MEMBER = re.compile(rf"(?:\"(?:\\.|[^\"\\\n])+\"|'[^'\\\n,]{{1,60}}'|“[^“”\\\n，]{{1,60}}”)[{SPACE}]*[:：]")
#: A string closed by another kind of quote than it was opened with, and the member after it.
FOREIGN_END = re.compile(
    rf"[”“＂’』」][{SPACE}]*(?:[,，][{SPACE}]*[\"“][^\"“”]{{1,60}}[\"”][{SPACE}]*[:：]|[}}\]][}}\]`{SPACE}]*\Z)"
)
#: A quoted beginning, and no more, before the text ends: a key that was cut off.
CUT_KEY = re.compile(rf"[{SPACE}]*[{QUOTE_SET}][^{ANY_CLOSER}\n]{{0,120}}[{ANY_CLOSER}]?[{SPACE}]*\Z")
#: An escape that was cut off, or the first half of a pair of them.
CUT_ESCAPE = re.compile(r"(?:\\u[dD][89abAB][0-9a-fA-F]{2})?\\(?:u[0-9a-fA-F]{0,3})?\Z|\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
WORDS = {"true": True, "false": False, "null": None, "none": None, "nan": None, "undefined": None, "infinity": None}
FULL_WIDTH = {ord("０") + i: str(i) for i in range(10)} | {ord("．"): ".", ord("－"): "-", ord("＋"): "+"}
ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "'": "'"}
LITERAL = re.compile(r"[-\d]|true|false|null")
HEX4 = re.compile(r"[0-9a-fA-F]{4}")
PLAIN = re.compile(r"[^\\\"'”“’‘＂＇」』`»\x00-\x1f]+")

#: LaTeX commands whose first letter makes a valid JSON escape (`\frac` would become a form feed and "rac"). Those whose
#: rest is a word of some language count only with mathematics after them.
MATH = r"(?= ?[_^$\\{}()\d])"
LATEX = re.compile(
    r"(?:b(?:egin|eta|ar|inom|oldsymbol|mod|ullet|ot|f)|f(?:rac|orall|lat|ootnote)"
    rf"|n(?:abla|eq|otin|ewline|oindent|(?:u|e|ot|i){MATH})"
    r"|r(?:ight(?:arrow)?|angle|ho|m(?=\{)|ceil|floor)"
    rf"|t(?:heta|imes|ext(?:bf|it|rm|tt)?(?=\{{)|ilde|riangle|frac|(?:au|an|op|o){MATH}))(?![A-Za-z])"
)
#: The rest of a drive path after `C:`, as one token.
PATH = re.compile(r"(?:\\[\w.\-~$%]+)+")
DRIVE = re.compile(r"(?:^|[^A-Za-z0-9])[A-Za-z]:$")
