"""What is wrong with a setting, in one line: its name, the fault, an example of a right one; never a secret."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import BaseModel, SecretStr, ValidationError

from communitree_shared.contract.options import limits
from communitree_shared.errors import UsageError

PREFIX = "COMMUNITREE_"

#: Of settings without a default that would do as an example.
_EXAMPLES = {
    "redis_url": "redis://:password@redis.example.com:6379/0", "s3_endpoint": "https://s3.example.com:9000",
    "redis_ca_bundle": "/etc/ssl/redis-ca.pem", "redis_certificate": "/etc/ssl/our-certificate.pem",
    "redis_private_key": "/etc/ssl/our-key.pem", "s3_ca_bundle": "/etc/ssl/s3-ca.pem", "s3_prefix": "team-a",
    "base_url": "https://api.example.com/v1", "price_input": "0.15", "price_output": "0.6", "price_cached": "0.075",
    "requests_per_minute": "600", "tokens_per_minute": "200000", "concurrency": "64", "max_tokens": "4000",
    "temperature": "0", "context_tokens": "128000", "extra_headers": '{"X-Team": "a"}', "extra_body": '{"seed": 1}',
    "proxy": "http://proxy.example.com:3128", "ca_bundle": "/etc/ssl/ca.pem", "ask": '{"budget_tokens": 24000}',
    "home": "/var/lib/communitree", "api_version": "2024-10-21",
}  # fmt: skip

_KINDS: dict[type, str] = {
    int: "is no whole number", float: "is no number", bool: "is neither true nor false", dict: "is no JSON object",
}  # fmt: skip

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def refusal(model: type[BaseModel], name: str, why: str, *, value: Any = None, prefix: str = PREFIX) -> UsageError:
    """Return the error of one setting. `value` is shown, unless the setting may hold a secret."""
    variable = f"{prefix}{name.upper()}"
    shown = "" if value is None or may_be_secret(model, name) or "@" in str(value) else f" ({str(value)[:60]!r})"
    return UsageError(
        f"{_place(variable, name)}{shown} {why}.", hint=f"For example: {variable}={_example(model, name)}"
    )


def first_fault(model: type[BaseModel], error: ValidationError, *, prefix: str = PREFIX) -> UsageError:
    """Return what the first value that a model of settings refused is told."""
    first = error.errors()[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    field = model.model_fields[name]
    kind = next((a for a in get_args(field.annotation) if a is not type(None)), field.annotation)
    if get_origin(field.annotation) is not None and type(None) not in get_args(field.annotation):
        kind = field.annotation
    value = first["input"] if len(first["loc"]) == 1 else None
    if first["type"].startswith(("greater_than", "less_than", "finite")):
        why = f"is out of range: {limits(field, huge=first['type'].startswith(('less', 'finite'))) or 'a number'}"
    elif first["type"] == "literal_error":
        why = f"is none of {', '.join(map(str, get_args(kind)))}"
    elif first["type"] == "string_pattern_mismatch":
        why = "has characters, or a length, that it may not have"
    elif first["type"].startswith("string"):
        why = "is no text"
    elif first["type"] == "control":
        why = "has a control character in it"
    else:
        plain: Any = get_origin(kind) or kind
        why = _KINDS.get(plain, f"is not right: {first['msg'].rstrip('.')}")
    return refusal(model, name, why, value=value, prefix=prefix)


def may_be_secret(model: type[BaseModel], name: str) -> bool:
    """Say whether a setting's value must not be shown."""
    field = model.model_fields[name]
    return field.annotation is SecretStr or SecretStr in get_args(field.annotation) or not field.repr


def s3_endpoint(text: str) -> tuple[str, bool | None]:
    """Return `host:port` of an endpoint, and whether its scheme says HTTPS (None: it has none).

    Raises:
        ValueError: what is wrong with it.
    """
    scheme, there, rest = text.partition("://")
    if not there:
        scheme, rest = "", text
    if scheme.lower() not in {"", "http", "https"}:
        raise ValueError("begins with neither http:// nor https://")
    if "@" in rest:
        raise ValueError(
            "has a name or a password in it, which stand in COMMUNITREE_S3_ACCESS_KEY and COMMUNITREE_S3_SECRET_KEY"
        )
    rest = rest.rstrip("/")
    if re.search(r"[/?#]", rest):
        raise ValueError("has a path: only host and port stand in it, the bucket in COMMUNITREE_S3_BUCKET")
    host_and_port(rest)
    return rest, None if not scheme else scheme.lower() == "https"


def http_url(text: str) -> None:
    """Look at the URL of an endpoint or a proxy.

    Raises:
        ValueError: what is wrong with it.
    """
    scheme, there, rest = text.partition("://")
    if not there or scheme.lower() not in {"http", "https"}:
        raise ValueError("begins with neither http:// nor https://")
    if re.search(r"\s", text):
        raise ValueError("has a blank in it")
    host_and_port(re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2])


def host_and_port(text: str) -> None:
    """Look at `host`, `host:port` or `[IPv6]:port`.

    Raises:
        ValueError: what is wrong with it.
    """
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError("has a port that is no number from 1 to 65535, or half an IPv6 address") from None
    if not host:
        raise ValueError("names no host")
    if not (_HOST.fullmatch(host) or text.startswith("[")):
        raise ValueError("has characters in its host that no host has")
    if port == 0 or text.endswith(":"):
        raise ValueError("has a port that is no number from 1 to 65535")


def headers(given: Mapping[str, str]) -> None:
    """Look at headers.

    Raises:
        ValueError: what is wrong with them.
    """
    if any(not _HEADER.fullmatch(name) or _CONTROL.search(value) for name, value in given.items()):
        raise ValueError("has a header that HTTP cannot carry")


def readable(path: str) -> None:
    """Look at a file that a setting names.

    Raises:
        ValueError: it cannot be read.
    """
    try:
        with open(path, "rb"):
            pass
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"names a file that cannot be read: {why}") from None


def has_control(text: str) -> bool:
    """Say whether a text has what no setting has."""
    return bool(_CONTROL.search(text))


def _place(variable: str, name: str) -> str:
    """Return where a setting was made, as its maker wrote it."""
    there = {key.upper() for key in os.environ}
    if f"{variable}_FILE" in there:
        return f"{variable}_FILE"
    config = os.environ.get(f"{PREFIX}CONFIG")
    return variable if variable in there or not config else f"{variable} (`{name}` in {config})"


def _example(model: type[BaseModel], name: str) -> str:
    stem = name.removeprefix("llm_")
    if stem in _EXAMPLES:
        return _EXAMPLES[stem]
    default = model.model_fields[name].get_default(call_default_factory=True)
    if isinstance(default, bool) or default in (None, ""):
        return "true" if isinstance(default, bool) else "4"
    return str(default)
