"""A stand-in for an OpenAI-compatible chat provider, with faults on demand and counters."""

from support.fake_provider.behaviour import Behaviour
from support.fake_provider.server import FakeProvider, running_provider

__all__ = ["Behaviour", "FakeProvider", "running_provider"]
