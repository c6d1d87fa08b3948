"""One stage's endpoint: its URL, headers, proxy and certificates, worked out once."""

from __future__ import annotations

import hashlib
import re
import ssl
from urllib.parse import quote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from communitree_shared.errors import UsageError
from communitree_shared.settings import ModelSettings

#: What keys look like, for those that are not ours (a gateway's own, echoed in its error text).
_KEY_LIKE = re.compile(r"\b(?:sk|pk|gsk|xai|key|tok)-[A-Za-z0-9_\-]{8,}|(?i:\bbearer\s+)[A-Za-z0-9._~+/=\-]{8,}")

_HIDDEN = "[hidden]"


class Endpoint:
    """Where and how the calls of one stage go. Its `repr` shows neither key nor headers."""

    def __init__(self, settings: ModelSettings) -> None:
        if not settings.base_url:
            raise UsageError(
                f"No endpoint is set for the model {settings.model!r}.",
                hint="Set COMMUNITREE_LLM_BASE_URL (with its /v1), or leave COMMUNITREE_LLM_MODEL unset.",
            )
        self.settings = settings
        self.model = settings.model
        self.url = chat_url(settings)
        key = settings.api_key.get_secret_value()
        self.headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if key and settings.api_version:
            self.headers["api-key"] = key
        elif key:
            self.headers["Authorization"] = f"Bearer {key}"
        self.headers.update(settings.extra_headers)
        self.proxy, proxy_login = _proxy(settings.proxy, self.url)
        self.ssl: ssl.SSLContext | bool = True
        if settings.ca_bundle:
            try:
                self.ssl = ssl.create_default_context(cafile=settings.ca_bundle)
            except (OSError, ssl.SSLError) as error:
                raise UsageError(
                    f"The CA bundle {settings.ca_bundle!r} cannot be read: {error}.",
                    hint="Set COMMUNITREE_LLM_CA_BUNDLE to a file of PEM certificates.",
                ) from error
        secrets = {key, *proxy_login, *settings.extra_headers.values()}
        self._secrets = sorted((secret for secret in secrets if len(secret) >= 4), key=len, reverse=True)
        #: Names this endpoint, model and key where they are shared; no key can be read from it.
        self.identity = _digest(f"{self.url}\n{self.model}\n{key}")
        #: The same without the key: what an endpoint can do does not depend on who asks.
        self.kind = _digest(f"{self.url}\n{self.model}")

    def __repr__(self) -> str:
        return f"<Endpoint {self.url} {self.model}>"

    def scrub(self, text: str) -> str:
        """Return a text without this endpoint's secrets, nor anything else that looks like a key."""
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        return _KEY_LIKE.sub(_HIDDEN, text)


def chat_url(settings: ModelSettings) -> str:
    """Return the address of chat completions; Azure's form when `api_version` is set."""
    base = settings.base_url.strip().rstrip("/")
    if not urlsplit(base).netloc or urlsplit(base).scheme not in ("http", "https"):
        raise UsageError(
            "The model's base URL is not an http address.",
            hint="Set COMMUNITREE_LLM_BASE_URL, for example https://host/v1.",
        )
    if "@" in urlsplit(base).netloc:
        raise UsageError(
            f"The model's base URL on {urlsplit(base).hostname} carries a name or password.",
            hint="Take it out of the URL and use COMMUNITREE_LLM_API_KEY or COMMUNITREE_LLM_EXTRA_HEADERS.",
        )
    query = f"?api-version={quote(settings.api_version, safe='')}" if settings.api_version else ""
    if base.endswith("/chat/completions"):
        return base + query
    if settings.api_version and "/deployments/" not in base and not base.endswith("/v1"):
        base = f"{base.removesuffix('/openai')}/openai/deployments/{quote(settings.model, safe='')}"
    return f"{base}/chat/completions{query}"


def _proxy(setting: str, url: str) -> tuple[str | None, list[str]]:
    """The proxy set for the stage, else the one that the environment names, looked up once and not for each call."""
    parts = urlsplit(url)
    proxy = setting
    if not proxy and not proxy_bypass(parts.netloc.rpartition("@")[2]):
        proxy = getproxies().get(parts.scheme, "")
    if not proxy:
        return None, []
    if "//" not in proxy:
        proxy = f"http://{proxy}"
    login = urlsplit(proxy)
    return proxy, [part for part in (login.username, login.password, urlunsplit(login)) if part]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]
