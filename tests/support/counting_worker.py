"""A real worker that writes down how many bytes it tokenises: `python -m support.counting_worker KIND`.

One line a call, to the file named by COUNTED: pool processes share it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import tiktoken

from communitree_workers.__main__ import main
from communitree_workers.runtime.intake import Intake

_out = os.open(os.environ["COUNTED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def _counting(method: Callable[..., Any], many: bool) -> Callable[..., Any]:
    def call(self: tiktoken.Encoding, text: Any, *args: Any, **options: Any) -> Any:
        texts = text if many else [text]
        os.write(_out, b"%d\n" % sum(len(t.encode("utf-8", "surrogatepass")) for t in texts))
        return method(self, text, *args, **options)

    return call


for name in ("encode", "encode_ordinary", "encode_to_numpy", "encode_batch", "encode_ordinary_batch"):
    original = getattr(tiktoken.Encoding, name)
    setattr(tiktoken.Encoding, name, _counting(original, name.endswith("batch")))

# It looks at Redis five times a second, whatever the jobs do.
Intake.run = lambda self: None  # type: ignore[method-assign]

if __name__ == "__main__":
    sys.exit(main(["worker", *sys.argv[1:]]))
