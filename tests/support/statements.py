"""Answers whose every statement is known: facts of many shapes, by a model without mistakes or by a noisy one."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

#: Facts of one report stand in one frame and differ in a name or a number: what a measure of words mistakes.
PLACES = [
    "Maren", "Lorne", "Tidewell", "Oskar", "Quill", "Brenna", "Halden", "Vetle", "Marlow", "Senn", "Torvik", "Aldous",
    "Ravn", "Pell", "Ystad", "Corrin",
]  # fmt: skip
PEOPLE = ["Ida Holm", "Per Lund", "Ana Reyes", "Jan Vos", "Mia Ferrer", "Tom Okafor", "Eva Brandt", "Leo Santos"]
FIRMS = ["Alder Trust", "Norden Bank", "Kestrel Works", "Pine Mutual", "Harbour Union", "Delta Mills", "Ferris & Sons"]
THINGS = ["bridge", "canal", "harbour", "library", "railway", "museum", "dam", "theatre"]
ZH_FIRMS = ["海潮集团", "北辰银行", "松林基金", "远帆公司", "星河实业", "长风商会"]
ZH_PLACES = ["临河", "青石", "云台", "白沙", "金湾", "竹溪", "东岭", "南浦", "西坞", "北塘", "石桥", "柳林"]
ZH_THINGS = ["大桥", "运河", "港口", "图书馆", "铁路", "博物馆", "水坝", "剧院"]
CALLS = ["parse_config", "load_table", "flushQueue", "Client.ask", "merge_rows", "open_store", "retry_call", "cut_tree"]
MONTHS = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
]  # fmt: skip


@dataclass
class Fact:
    """A statement of one report. `other`: the same in other words; `zh`: translated; `cells`: as a row of a table."""

    text: str
    report: int
    other: str = ""
    zh: str = ""
    cells: tuple[str, ...] = ()

    def written(self, style: str) -> str:
        """Return the statement as an answer of this style has it."""
        forms = {"other": self.other, "translated": self.zh, "table": "| " + " | ".join(self.cells) + " |"}
        return forms.get(style, self.text)


@dataclass
class World:
    """Reports with their facts; `titles` of the reports."""

    facts: list[Fact]
    titles: dict[int, str]
    chinese: bool = False
    header: tuple[str, ...] = ()


@dataclass
class Written:
    """An answer. `stated`, `named`: positions of facts."""

    text: str
    stated: set[int] = field(default_factory=set)
    named: set[int] = field(default_factory=set)


def _frame(rng: random.Random, report: int) -> list[Fact]:
    firm, thing = rng.choice(FIRMS), rng.choice(THINGS)
    places = rng.sample(PLACES, 5)
    year = rng.randint(1900, 2005)
    out = []
    for place in places:
        if rng.random() < 0.5:
            year += rng.randint(0, 3)
        text = f"The {firm} financed the {place} {thing} in {year}."
        zh = f"{firm}于{year}年资助了{place}的建设。"
        out.append(
            Fact(text, report, f"In {year} the {firm} paid for the {place} {thing}.", zh, (firm, place, str(year)))
        )
    return out


def _numbers(rng: random.Random, report: int) -> list[Fact]:
    firm = rng.choice(FIRMS)
    place = rng.choice(PLACES)
    out = []
    for n in range(5):
        count = rng.randint(1, 90) * 1000 + n * 10
        year = 1990 + n
        text = f"In {year} {firm} employs {count:,} workers at {place}."
        other = f"{firm} has {count} staff at {place} in {year}."
        out.append(
            Fact(
                text, report, other, f"{year}年，{firm}在{place}雇用{count}人。", (firm, place, f"{count:,}", str(year))
            )
        )
    return out


def _dates(rng: random.Random, report: int) -> list[Fact]:
    thing, place = rng.choice(THINGS), rng.choice(PLACES)
    year, month = rng.randint(1900, 2005), rng.randint(1, 12)
    out = []
    for n, day in enumerate(rng.sample(range(13, 29), 5)):
        person = PEOPLE[(report + n) % len(PEOPLE)]
        text = f"{person} opened the {place} {thing} on {day} {MONTHS[month - 1]} {year}."
        other = f"On {MONTHS[month - 1]} {day}, {year}, the {place} {thing} was inaugurated by {person}."
        zh = f"{year}年{month}月{day}日，{person}为{place}揭幕。"
        out.append(Fact(text, report, other, zh, (person, place, f"{year}-{month:02}-{day:02}")))
    return out


def _code(rng: random.Random, report: int) -> list[Fact]:
    out = []
    for call in rng.sample(CALLS, 5):
        code, error = rng.randint(100, 599), rng.choice(["ValueError", "KeyError", "TimeoutError", "OSError"])
        text = f"The function `{call}` raises {error} when the server returns status {code}."
        other = f"If the server gives back status {code}, `{call}` throws {error}."
        out.append(
            Fact(text, report, other, f"服务器返回状态{code}时，`{call}`抛出{error}。", (call, error, str(code)))
        )
    return out


def _prose(rng: random.Random, report: int) -> list[Fact]:
    """Facts without a number: the name alone tells them apart."""
    out = []
    for place in rng.sample(PLACES, 5):
        person, thing = rng.choice(PEOPLE), rng.choice(THINGS)
        text = f"The council of {place} approved the plan that {person} drew up for the {thing}."
        other = f"What {person} drew up for the {thing} was agreed to by the council of {place}."
        out.append(Fact(text, report, other, f"{place}议会批准了{person}起草的方案。", (place, person, thing)))
    return out


def _chinese(rng: random.Random, report: int) -> list[Fact]:
    firm, thing = rng.choice(ZH_FIRMS), rng.choice(ZH_THINGS)
    year = rng.randint(1950, 2005)
    out = []
    for place in rng.sample(ZH_PLACES, 5):
        year += rng.randint(0, 3)
        million = rng.randint(2, 90)
        text = f"{firm}在{year}年出资{million}万元修建了{place}{thing}。"
        other = f"{year}年，{place}{thing}由{firm}投入{million}万元建成。"
        en = f"In {year} the group paid {million * 10000} yuan for the building."
        out.append(Fact(text, report, other, en, (firm, place + thing, f"{year}年", f"{million}万元")))
    return out


SHAPES: dict[str, tuple[Callable[[random.Random, int], list[Fact]], str]] = {
    "frame": (_frame, "prose"), "numbers": (_numbers, "prose"), "dates": (_dates, "prose"), "code": (_code, "prose"),
    "names": (_prose, "prose"), "Chinese": (_chinese, "prose"), "lists": (_frame, "list"),
    "Chinese lists": (_chinese, "list"), "table": (_numbers, "table"), "Chinese table": (_chinese, "table"),
    "paragraphs": (_frame, "paragraph"), "paraphrased": (_frame, "other"), "paraphrased numbers": (_numbers, "other"),
    "paraphrased dates": (_dates, "other"), "paraphrased code": (_code, "other"),
    "paraphrased names": (_prose, "other"),
    "paraphrased Chinese": (_chinese, "other"), "translated": (_frame, "translated"),
    "translated dates": (_dates, "translated"), "translated Chinese": (_chinese, "translated"),
}  # fmt: skip
HEADERS = {"table": ("firm", "place", "workers", "year"), "Chinese table": ("机构", "项目", "年份", "金额")}


def world(shape: str, seed: int, reports: int = 10) -> World:
    """Return reports with five facts each."""
    make = SHAPES[shape][0]
    rng = random.Random(f"{shape} {seed}")
    chinese = "hinese" in shape
    facts = [fact for report in range(reports) for fact in make(rng, report)]
    rng.shuffle(facts)
    if chinese:
        names = [f"{rng.choice(ZH_PLACES)}志卷{'甲乙丙丁戊己庚辛壬癸'[r]}" for r in range(reports)]
    else:
        names = [f"Chronicle of region {'ABCDEFGHIJ'[r]}" for r in range(reports)]
    return World(facts, dict(enumerate(names)), chinese, HEADERS.get(shape, ()))


def write(shape: str, one: World, seed: int, noise: float = 0.0) -> Written:
    """Return an answer that states about half of the facts, in the shape's way, and names some reports in a list.

    `noise`: the share of sentences with a mistake: a wrong citation, none, or another number in the fact.
    """
    rng = random.Random(f"{shape} {seed} {noise}")
    style = SHAPES[shape][1]
    chosen = [i for i in range(len(one.facts)) if rng.random() < 0.5]
    out = Written("")
    parts: list[str] = []
    rows: list[tuple[str, list[int]]] = []
    for i in chosen:
        fact = one.facts[i]
        text = right = fact.written(style)
        report, cited = fact.report, True
        if rng.random() < noise:
            mistake = rng.choice(["citation", "none", "number"])
            if mistake == "citation":
                report = (report + 1) % len(one.titles)
            elif mistake == "none":
                cited = False
            else:
                text = _spoiled(text, rng)
        good = report == fact.report and cited and text == right
        rows.append((text + (f" [Data: Reports ({report})]" if cited else ""), [i] if good else []))
    for text, facts in rows:
        parts.append(f"- {text}" if style == "list" else text)
        out.stated.update(facts)
    glue = " " if style == "paragraph" else "\n" if style in ("list", "table") else "\n\n"
    body = glue.join(parts)
    left = sorted({f.report for i, f in enumerate(one.facts)} - {one.facts[i].report for i in chosen})
    used = {one.facts[i].report for i in chosen}
    listed = left or sorted(used)[:2]
    titles = ("、" if one.chinese else ", ").join(one.titles[r] for r in listed)
    tail = f"{'另见' if one.chinese else 'Other subjects'}: {titles} [Data: Reports ({', '.join(map(str, listed))})]"
    out.named = {i for i, f in enumerate(one.facts) if f.report in listed and i not in out.stated}
    if style == "table":
        head = "| " + " | ".join(one.header) + " |\n" + "|" + "---|" * len(one.header)
        body = f"{head}\n{body}"
    out.text = f"{'概述' if one.chinese else '## Findings'}\n\n{body}\n\n{tail}\n"
    return out


def _spoiled(text: str, rng: random.Random) -> str:
    digits = [i for i, c in enumerate(text) if c.isdigit()]
    if not digits:
        return text
    i = digits[-1]
    return text[:i] + str((int(text[i]) + rng.randint(1, 8)) % 10) + text[i + 1 :]


def sibling(fact: Fact, one: World, rng: random.Random) -> str:
    """Return the fact of a sibling report: one name or one number is another."""
    text = fact.text
    names = [n for pool in (PLACES, PEOPLE, FIRMS, ZH_FIRMS, ZH_PLACES, CALLS) for n in pool if n in text]
    if names and rng.random() < 0.5:
        name = rng.choice(names)
        pool = next(p for p in (PLACES, PEOPLE, FIRMS, ZH_FIRMS, ZH_PLACES, CALLS) if name in p)
        return text.replace(name, rng.choice([n for n in pool if n not in text]))
    return _spoiled(text, rng) if any(c.isdigit() for c in text) else text.replace(names[0], "Zell")
