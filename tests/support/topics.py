"""A small real corpus that is on every machine: topics of CPython's language reference."""

from __future__ import annotations

from pathlib import Path
from pydoc_data.topics import topics


def write_topics(folder: Path, number: int = 12) -> Path:
    """Write so many topics, one a file, into a new folder."""
    folder.mkdir(parents=True)
    for name in sorted(topics)[:number]:
        (folder / f"{name}.txt").write_text(topics[name], encoding="utf-8")
    return folder


_SURNAMES = "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗"
_GIVEN = ("晓明", "建国", "丽华", "志强", "美玲", "海涛")
_PORTS = ("上海", "宁波", "青岛", "天津", "大连", "厦门", "广州", "深圳", "烟台", "连云港")
_WHAT = ("集装箱码头", "防波堤", "渔市", "拖轮船队", "港口铁路", "盐场", "灯塔", "造船厂")


def write_chinese(folder: Path, number: int = 20, sentences: int = 30) -> Path:
    """Write so many Chinese documents, each about people and things of its own, into a new folder."""
    folder.mkdir(parents=True)
    for d in range(number):
        port, surname = _PORTS[d % 10], _SURNAMES[d % 20]
        lines = []
        for s in range(sentences):
            who, other = f"{surname}{_GIVEN[s % 6]}", f"{surname}{_GIVEN[(s * 3 + 1) % 6]}"
            what = f"{port}{_WHAT[(d + s) % 8]}"
            lines.append(f"{port}港务集团的{who}在第{d * sentences + s}号报告里向{other}说明了{what}的情况。")
        (folder / f"报告-{d:02}.txt").write_text("".join(lines), encoding="utf-8")
    return folder
