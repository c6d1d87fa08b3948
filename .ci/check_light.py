"""Check that the base installation is the light client: it imports, and nothing heavy came along."""

import importlib.util
import sys
import time

HEAVY = ("pandas", "pyarrow", "igraph", "leidenalg", "numpy", "tiktoken", "aiohttp")

found = [name for name in HEAVY if importlib.util.find_spec(name)]
if found:
    sys.exit(f"the base installation pulls {', '.join(found)}")
begun = time.perf_counter()
from communitree import Client  # noqa: E402

print(f"light client: {Client.__name__} imports in {time.perf_counter() - begun:.2f} s without {', '.join(HEAVY)}")
