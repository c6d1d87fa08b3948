"""The options of a job as flags: made from the models that travel in its request, so that none is forgotten."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from communitree_shared.contract.options import fault, field_of
from communitree_shared.errors import UsageError

_SIMPLE = (str, int, float, bool)


class Flags:
    """The flags of one options model. Names are the fields' names, with dashes.

    Args:
        model: IndexOptions or QueryOptions.
        panels: section of the model ("" for its own fields) → heading in the help.
        own: field → the flags that the command itself has for it, in words; it gets none here.
        words: field → its help, where the model's own description is not for a caller.
        parsers: field → how its value is read, where people write it otherwise than Python does.
    """

    def __init__(
        self,
        model: type[BaseModel],
        panels: dict[str, str],
        own: dict[str, str] | None = None,
        words: dict[str, str] | None = None,
        parsers: dict[str, Callable[[str], Any]] | None = None,
    ) -> None:
        self.model = model
        self._help = words or {}
        self._parsers = parsers or {}
        self.paths: dict[str, tuple[str, ...]] = {}
        #: Where an option stands in the model → its flag or flags as people write them.
        self.spelled = {tuple(name.split(".")): flags for name, flags in (own or {}).items()}
        self.parameters: list[inspect.Parameter] = []
        for section, heading in panels.items():
            part = model.model_fields[section].annotation if section else model
            assert isinstance(part, type)
            assert issubclass(part, BaseModel)
            for name, field in part.model_fields.items():
                path = (section, name) if section else (name,)
                if path not in self.spelled and (kind := _kind(field.annotation)) is not None:
                    self._add(name, path, kind, field, heading)

    def _add(self, flag: str, path: tuple[str, ...], kind: Any, field: FieldInfo, heading: str) -> None:
        assert flag not in self.paths, flag
        self.paths[flag] = path
        many = get_origin(kind) is list
        word = "--" + (_singular(flag) if many else flag).replace("_", "-")
        if kind is bool and field.get_default():
            word += f"/--no-{flag.replace('_', '-')}"
        self.spelled[path] = word
        several = " Several times for several." if many else ""
        option = typer.Option(
            word,
            help=f"{self.sentence(path)}{several}{_default(field.get_default())}".strip(),
            rich_help_panel=heading,
            show_default=False,
            parser=self._parsers.get(".".join(path)),
        )
        self.parameters.append(
            inspect.Parameter(
                flag, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option]
            )
        )

    def sentence(self, path: tuple[str, ...]) -> str:
        """Return what an option does."""
        field = field_of(self.model, path)
        said = self._help.get(".".join(path)) or (field.description if field else "") or ""
        said = said if said.endswith(".") or not said else f"{said}."
        return f"{said[:1].upper()}{said[1:]}"

    def take(self, given: dict[str, Any]) -> dict[str, Any]:
        """Take the flags that were given out of a command's arguments; return them as nested options."""
        options: dict[str, Any] = {}
        for flag, path in self.paths.items():
            value = given.pop(flag, None)
            if value is not None and value != []:
                place = options if len(path) == 1 else options.setdefault(path[0], {})
                place[path[-1]] = value
        return options

    def build(self, options: dict[str, Any]) -> Any:
        """Return the options model.

        Raises:
            UsageError: a value is out of its range; names the flag.
        """
        try:
            return self.model.model_validate(options)
        except ValidationError as error:
            path, wrong = fault(self.model, error)
            spelled = next((self.spelled[path[:n]] for n in (1, 2) if path[:n] in self.spelled), path[-1])
            raise UsageError(f"{re.split('[ ,/]', spelled)[0]}: {wrong}.") from None


def with_flags(
    flags: Flags, also: Sequence[inspect.Parameter] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a command take a model's flags: it gets those that were given as the dict `options`.

    `also`: more parameters, which it gets as its keywords.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "options"]
        own = [p for p in own if p.kind is not inspect.Parameter.VAR_KEYWORD]

        def wrapper(**given: Any) -> Any:
            options = flags.take(given)  # leaves the command's own arguments in `given`
            return command(**given, options=options)

        wrapper.__name__, wrapper.__doc__ = command.__name__, command.__doc__
        keywords = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
        wrapper.__signature__ = inspect.Signature([*keywords, *also, *flags.parameters])  # type: ignore[attr-defined]
        return wrapper

    return decorate


def _singular(name: str) -> str:
    return name.removesuffix("ies") + "y" if name.endswith("ies") else name.removesuffix("s")


def _default(value: Any) -> str:
    if value is None or value is False or value in ("", []):
        return ""
    if value is True:
        return " (on)"
    shown = (
        ", ".join(map(str, value)) if isinstance(value, list) else f"{value:,}" if type(value) is int else str(value)
    )
    return f" (default: {shown})"


def _kind(annotation: Any) -> Any:
    """Return what typer can read of an annotation, None where a flag cannot carry it (sections, turns, dicts)."""
    options = [a for a in get_args(annotation) if a is not type(None)]
    if type(None) in get_args(annotation) and len(options) == 1:
        annotation = options[0]
    readable = annotation in _SIMPLE or annotation == list[str] or get_origin(annotation) is Literal
    return annotation if readable else None
