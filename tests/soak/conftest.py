from __future__ import annotations

from support.fixtures import client, provider, stack, topics

__all__ = ["client", "provider", "stack", "topics"]
