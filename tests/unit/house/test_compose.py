"""The compose files name queues, settings, volumes and passwords that exist; no Docker engine is needed to see it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from communitree.embedded import certificate
from communitree.embedded.certificate import Certificate
from communitree_shared.contract.messages import CPU_QUEUES, MODEL_QUEUES, QUEUES
from support.house import ROOT
from support.settings_list import variables

BASE, SEAWEED = "docker-compose.yml", "docker-compose.seaweedfs.yml"
KINDS = {"models", "cpu"}
VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)(:?[-?+][^}]*)?\}")


def load(name: str) -> dict[str, Any]:
    value: dict[str, Any] = yaml.safe_load((ROOT / name).read_text())
    return value


def merged(*names: str) -> dict[str, Any]:
    """Merge as compose does, as far as these files need: mappings by key, volumes by target, the rest replaced."""
    result: dict[str, Any] = {}
    for name in names:
        for section, entries in load(name).items():
            if section != "services":
                result.setdefault(section, {})
                result[section] = {**result[section], **entries} if isinstance(entries, dict) else entries
                continue
            for service, fields in entries.items():
                old = result.setdefault("services", {}).setdefault(service, {})
                for field, value in fields.items():
                    if isinstance(value, dict):
                        old[field] = {**old.get(field, {}), **value}
                    elif field == "volumes":
                        targets = {v.split(":")[1]: v for v in [*old.get(field, []), *value]}
                        old[field] = list(targets.values())
                    else:
                        old[field] = value
    return result


STACKS = pytest.mark.parametrize("names", [(BASE,), (BASE, SEAWEED)], ids=["minio", "seaweedfs"])


def workers(compose: dict[str, Any]) -> dict[str, list[str]]:
    """Return the queues of each worker service."""
    return {
        name: service["command"][1:]
        for name, service in compose["services"].items()
        if service["command"][0] == "worker"
    }


@STACKS
def test_each_worker_serves_queues_that_exist_and_are_of_one_kind(names: tuple[str, ...]) -> None:
    for name, queues in workers(merged(*names)).items():
        assert queues, name
        assert set(queues) <= set(QUEUES) | KINDS, name
        assert set(queues) <= set(MODEL_QUEUES) | {"models"} or set(queues) <= set(CPU_QUEUES) | {"cpu"}, name


@STACKS
def test_each_queue_is_served_exactly_once(names: tuple[str, ...]) -> None:
    served = [queue for queues in workers(merged(*names)).values() for queue in queues]
    assert sorted(served) == sorted(QUEUES)


@STACKS
def test_each_stage_can_be_scaled_by_its_name(names: tuple[str, ...]) -> None:
    found = workers(merged(*names))
    assert set(found) == {"corpus", "cluster", "query", "local", *MODEL_QUEUES}
    assert all(queues == [name] for name, queues in found.items() if name != "local")
    for name in found:
        service = merged(*names)["services"][name]
        assert "container_name" not in service
        assert "ports" not in service


@STACKS
def test_every_setting_exists(names: tuple[str, ...]) -> None:
    for name, service in merged(*names)["services"].items():
        ours = {key for key in service.get("environment", {}) if key.startswith("COMMUNITREE_")}
        assert ours <= variables(), name
        if name in workers(merged(*names)):
            needed = {"REDIS_URL", "S3_ENDPOINT", "S3_ACCESS_KEY", "S3_SECRET_KEY", "S3_BUCKET"}
            assert {f"COMMUNITREE_{n}" for n in needed} <= ours


def test_every_variable_of_the_example_exists_and_is_complete() -> None:
    text = (ROOT / ".env.example").read_text()
    named = set(re.findall(r"^#?([A-Z][A-Z0-9_]+)=", text, re.MULTILINE))
    assert {n for n in named if n.startswith("COMMUNITREE_")} <= variables()
    used = {m[0] for name in (BASE, SEAWEED) for m in VARIABLE.findall((ROOT / name).read_text())}
    assert used <= set(re.findall(r"^([A-Z][A-Z0-9_]+)=", text, re.MULTILINE))


@pytest.mark.parametrize("name", [BASE, SEAWEED])
def test_no_password_stands_in_the_files(name: str) -> None:
    def walk(value: Any, path: str = "") -> list[str]:
        if isinstance(value, dict):
            return [p for k, v in value.items() for p in walk(v, f"{path}.{k}")]
        if isinstance(value, list):
            return [p for v in value for p in walk(v, path)]
        secret = re.search(r"(PASSWORD|SECRET|_KEY|AUTH)$", path.rsplit(".", 1)[-1])
        a_file = str(value).startswith("/tls/")
        return [path] if secret and not a_file and not VARIABLE.fullmatch(str(value)) else []

    assert not walk(load(name))
    command = load(name)["services"].get("valkey", {}).get("command", ["--requirepass", "${X}"])
    assert VARIABLE.fullmatch(command[command.index("--requirepass") + 1])


@STACKS
def test_ports_are_open_on_loopback_only(names: tuple[str, ...]) -> None:
    ports = [p for s in merged(*names)["services"].values() for p in s.get("ports", [])]
    assert ports
    assert all(p.startswith("127.0.0.1:") for p in ports)


@STACKS
def test_servers_have_health_checks_and_volumes_and_workers_wait_for_them(names: tuple[str, ...]) -> None:
    compose = merged(*names)
    for name in ("valkey", "s3"):
        service = compose["services"][name]
        assert service["healthcheck"]["test"]
        assert {v.split(":")[0] for v in service["volumes"]} <= set(compose["volumes"])
        assert "latest" not in service["image"]
        assert service["image"].count(":") == 1
    for name in workers(compose):
        waits = compose["services"][name]["depends_on"]
        assert waits == {"valkey": {"condition": "service_healthy"}, "s3": {"condition": "service_healthy"}}


def test_the_inner_ports_of_seaweedfs_want_a_certificate() -> None:
    services = load(SEAWEED)["services"]
    wanted = Certificate(Path("/tls")).environment()
    assert {name: value for name, value in services["s3"]["environment"].items() if name in wanted} == wanted
    assert "certificate:/tls:ro" in services["s3"]["volumes"]
    assert services["s3"]["depends_on"] == {"certificate": {"condition": "service_completed_successfully"}}
    assert "test -r /tls/tls.key" in services["s3"]["healthcheck"]["test"][1]
    maker = services["certificate"]
    assert [*maker["entrypoint"], *maker["command"]] == ["python", "-m", certificate.__name__, "/tls"]
    assert maker["network_mode"] == "none"
    assert maker["volumes"] == ["certificate:/tls"]
    others = {name for name, service in merged(BASE, SEAWEED)["services"].items() if name not in {"s3", "certificate"}}
    assert not [name for name in others if "/tls" in str(merged(BASE, SEAWEED)["services"][name])]
    # the image that runs it has what makes a certificate
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert [line.split()[-1] for line in lines if line.startswith("RUN pip install")] == ["cryptography"]


def test_the_queue_is_durable_and_never_evicted() -> None:
    command = load(BASE)["services"]["valkey"]["command"]
    options = dict(zip(command[1::2], command[2::2], strict=True))
    assert options["--appendonly"] == "yes"
    assert options["--maxmemory-policy"] == "noeviction"


def test_the_image_is_built_from_what_the_context_holds() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    copied = {source for line in lines if line.startswith("COPY ") for source in line.split()[1:-1]}
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for source in copied:
        assert (ROOT / source).exists(), source
        assert Path(source).parts[0] in kept, source
    assert any(line.startswith("USER ") and "root" not in line for line in lines)
    assert 'ENTRYPOINT ["communitree"]' in lines
    assert load(BASE)["x-worker"]["build"] == "."
