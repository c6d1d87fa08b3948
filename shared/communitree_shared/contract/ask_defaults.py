"""What a deployment sets for all questions: `COMMUNITREE_ASK_<OPTION>`, or `[ask]` in the file of settings.

What a caller gives by name goes before them, and they before what is built in. They are applied where a question is
submitted (the client's settings, or those of the worker that reads the stream of requests): a job carries all its
options, so that workers with other settings answer it alike, and equal questions stay equal.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from communitree_shared.contract.options import QueryOptions, SelectionOptions, fault, field_of
from communitree_shared.contract.strategies import TAKEN_BY
from communitree_shared.errors import UsageError

#: Prefix of the environment's variables.
PREFIX = "COMMUNITREE_ASK_"

#: What belongs to one question.
_OF_ONE = frozenset(("again", "history", "plan_only", "prompts"))

#: Who gives one of these has chosen what is read: no other of them comes from the settings.
_CHOICE = frozenset(("strategy", "budget_tokens", "budget_reports", "coverage", "level", "auto_tokens"))


def paths(model: type[BaseModel] = QueryOptions, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield where each option stands in `QueryOptions`; their last names are all different."""
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from paths(kind, (*above, name))
        elif name not in _OF_ONE:
            yield (*above, name)


#: Name of a setting → where its option stands.
NAMES: dict[str, tuple[str, ...]] = {path[-1]: path for path in paths()}


def read(given: Mapping[str, Any]) -> QueryOptions:
    """Return settings as options: what they set is in `model_fields_set`, in the sections too.

    Raises:
        UsageError: an unknown name, or a value that the option does not take; names the setting.
    """
    nested: dict[str, Any] = {}
    for name, value in given.items():
        path = NAMES.get(name)
        if path is None:
            near = get_close_matches(name, NAMES, n=1)
            raise UsageError(
                f"{_place(name)}: a question has no option {name!r}.",
                hint=f"Did you mean {near[0]!r}?" if near else "docs/how-to/questions.md lists them all.",
            )
        place = nested if len(path) == 1 else nested.setdefault(path[0], {})
        place[path[-1]] = value
    try:
        return QueryOptions.model_validate(nested)
    except ValidationError as error:
        path, wrong = fault(QueryOptions, error)
        field = field_of(QueryOptions, path)
        default = field.get_default() if field is not None else None
        right = f"For example: {PREFIX}{path[-1].upper()}={default}" if isinstance(default, (int, float)) else ""
        raise UsageError(
            f"{_place(path[-1])}: {wrong}.", hint=right or "docs/how-to/questions.md lists what each option takes."
        ) from None


def _place(name: str) -> str:
    """Return where a setting was made, as its maker wrote it."""
    variable = PREFIX + name.upper()
    return variable if variable in map(str.upper, os.environ) else f"`{name}` under [ask] in the file of settings"


def fill(options: QueryOptions, given: Mapping[str, Any], *, side_by_side: bool = False) -> QueryOptions:
    """Return options with settings in the place of what their caller did not give by name.

    `side_by_side`: all selections are planned, so that settings of each are kept, not only those of the chosen one.
    """
    if not given:
        return options
    defaults = read(given)
    filled: dict[str, Any] = {}
    for name in defaults.model_fields_set:
        value, own = getattr(defaults, name), getattr(options, name)
        if name == "selection":
            filled[name] = _selection(own, value, every=side_by_side, again=bool(options.again))
        elif isinstance(value, BaseModel):
            filled[name] = type(own).model_validate({**_set(value), **_set(own)})
        elif name not in options.model_fields_set:
            filled[name] = value
    return options.model_copy(update=filled)


def complete(options: QueryOptions, given: Mapping[str, Any], *, side_by_side: bool = False) -> QueryOptions:
    """Return options as `fill`, checked: whether one is ignored, the settings' selection may decide.

    `side_by_side`: each selection takes its own options, so that only the others' are checked.

    Raises:
        UsageError: some go not together, or a setting is wrong; says the remedy.
    """
    filled = fill(options, given, side_by_side=side_by_side)
    if side_by_side:
        filled.batch.check()
    else:
        filled.check()
    return filled


def _set(options: BaseModel) -> dict[str, Any]:
    return {name: getattr(options, name) for name in options.model_fields_set}


def _selection(own: SelectionOptions, defaults: SelectionOptions, *, every: bool, again: bool) -> SelectionOptions:
    given, more = _set(own), _set(defaults)
    if again:  # what is read is known; money is a ceiling all the same
        more = {name: value for name, value in more.items() if name == "budget_usd"}
    if again or own.model_fields_set & _CHOICE:
        more = {name: value for name, value in more.items() if name not in _CHOICE}
        given["strategy"] = own.strategy  # a budget in money from the settings chooses none beside it
    strategy = SelectionOptions.model_validate({**more, **given}).strategy
    if not every:  # what the selection would ignore makes no two questions different
        more = {name: value for name, value in more.items() if strategy in TAKEN_BY.get(name, (strategy,))}
    return SelectionOptions.model_validate({**more, **given, "strategy": strategy})
