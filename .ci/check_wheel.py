"""Check what is in the wheel: the three packages with everything they read at run time, and nothing else."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {
    "communitree_shared": ROOT / "shared",
    "communitree": ROOT / "producer",
    "communitree_workers": ROOT / "workers",
}
IGNORED = {".pyc", ".pyo"}


def main(path: str) -> int:
    with zipfile.ZipFile(path) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
        info = {name.split(".dist-info/")[1] for name in wheel.namelist() if ".dist-info/" in name}
    wanted = {
        f"{name}/{file.relative_to(top / name).as_posix()}"
        for name, top in PACKAGES.items()
        for file in (top / name).rglob("*")
        if file.is_file() and file.suffix not in IGNORED
    }
    faults = [f"missing: {name}" for name in sorted(wanted - held)]
    faults += [f"does not belong there: {name}" for name in sorted(held - wanted)]
    faults += [f"no {name}/py.typed" for name in PACKAGES if f"{name}/py.typed" not in held]
    faults += [f"no licence of {top.name}" for top in PACKAGES.values() if f"licenses/{top.name}/LICENSE" not in info]
    for suffix in (".lua", ".md", ".txt"):
        if not any(name.endswith(suffix) for name in held):
            faults.append(f"no {suffix} file")
    if "entry_points.txt" not in info:
        faults.append("no command")
    for fault in faults:
        print(fault, file=sys.stderr)
    if not faults:
        print(f"{Path(path).name}: {len(held)} files in three packages, three licences")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
