"""The compose files name queues, settings, volumes and passwords that exist; no Docker engine is needed to see it."""

from __future__ import annotations

import re
import subprocess
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
                        targets = {v.split(":")[:2][-1]: v for v in [*old.get(field, []), *value]}
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
        given = {key for key in service.get("environment", {}) if key.startswith("COMMUNITREE_")}
        ours = {key.removesuffix("_FILE") for key in given}
        assert ours <= variables(), name
        if name in workers(merged(*names)):
            needed = {"REDIS_URL", "S3_ENDPOINT", "S3_ACCESS_KEY", "S3_SECRET_KEY", "S3_BUCKET"}
            assert {f"COMMUNITREE_{n}" for n in needed} <= ours


def test_every_variable_of_the_example_exists_and_is_complete() -> None:
    text = (ROOT / ".env.example").read_text()
    named = set(re.findall(r"^#?([A-Z][A-Z0-9_]+)=", text, re.MULTILINE))
    assert {n.removesuffix("_FILE") for n in named if n.startswith("COMMUNITREE_")} <= variables()
    used = {m[0] for name in (BASE, SEAWEED) for m in VARIABLE.findall((ROOT / name).read_text())}
    assert used <= set(re.findall(r"^([A-Z][A-Z0-9_]+)=", text, re.MULTILINE))


@pytest.mark.parametrize("name", [BASE, SEAWEED])
def test_no_password_stands_in_the_files(name: str) -> None:
    def walk(value: Any, path: str = "") -> list[str]:
        if isinstance(value, dict):
            return [p for k, v in value.items() for p in walk(v, f"{path}.{k}")]
        if isinstance(value, list):
            return [p for v in value for p in walk(v, path)]
        secret = re.search(r"(PASSWORD|SECRET|_KEY|AUTH|REDIS_URL)(_FILE)?$", path.rsplit(".", 1)[-1])
        return [path] if secret and not str(value).startswith(("/tls/", "/run/secrets/")) else []

    assert not walk(load(name))
    assert not re.search(r"\$\{[A-Z0-9_]*(PASSWORD|KEY|SECRET)", (ROOT / name).read_text())


def test_each_secret_is_a_file_that_make_secrets_makes_and_that_its_users_name(tmp_path: Path) -> None:
    made = subprocess.run(["make", "-s", "-f", ROOT / "Makefile", "secrets"], cwd=tmp_path, check=True)
    assert made.returncode == 0
    folder = tmp_path / "secrets"
    assert folder.stat().st_mode & 0o777 == 0o700
    before = {path.name: path.read_text() for path in folder.iterdir()}
    assert all(path.stat().st_mode & 0o777 == 0o644 for path in folder.iterdir())
    assert before["redis_url"] == f"redis://:{before['valkey_password']}@valkey:6379/0"
    assert all(
        re.fullmatch("[0-9a-f]{20,48}", before[n]) for n in ("valkey_password", "s3_access_key", "s3_secret_key")
    )
    subprocess.run(["make", "-s", "-f", ROOT / "Makefile", "secrets"], cwd=tmp_path, check=True)
    assert {path.name: path.read_text() for path in folder.iterdir()} == before, "passwords in use are kept"

    compose = merged(BASE, SEAWEED)
    assert {name: where["file"] for name, where in compose["secrets"].items()} == {n: f"./secrets/{n}" for n in before}
    for name, service in compose["services"].items():
        named = set(re.findall(r"/run/secrets/(\w+)", str(service)))
        assert named <= set(service.get("secrets", [])), name
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert "secrets/" in ignored


@STACKS
def test_containers_have_limits_and_no_rights(names: tuple[str, ...]) -> None:
    services = merged(*names)["services"]
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["mem_limit"], name
        # the frozen images of MinIO were not tried with it
        assert service.get("read_only") or (name == "s3" and names == (BASE,)), name
        if name != "certificate":  # it ends at once
            assert service["cpus"], name
            assert service["logging"]["options"] == {"max-size": "10m", "max-file": "5"}, name
    assert [name for name, service in services.items() if service.get("cap_add")] == (
        ["s3"] if SEAWEED in names else []
    )


@STACKS
def test_each_worker_is_probed_and_writes_only_where_it_may(names: tuple[str, ...]) -> None:
    user = re.search(r"useradd --create-home --uid (\d+) communitree", (ROOT / "Dockerfile").read_text())
    assert user
    for name in workers(merged(*names)):
        service = merged(*names)["services"][name]
        assert service["healthcheck"]["test"] == ["CMD", "communitree", "worker", "--check"], name
        homes = [entry for entry in service["tmpfs"] if entry.startswith(service["environment"]["COMMUNITREE_HOME"])]
        assert f"uid={user[1]}" in homes[0]
        assert service["volumes"] == [service["environment"]["TMPDIR"]]


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
    assert [line.split()[-2:] for line in lines if line.startswith("RUN pip install")] == [
        ["'.[workers,documents]'", "cryptography"]
    ]


def test_the_queue_is_durable_and_never_evicted() -> None:
    command = load(BASE)["services"]["valkey"]["command"]
    options = dict(zip(command[::2], command[1::2], strict=True))
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
