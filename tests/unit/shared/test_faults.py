from __future__ import annotations

import pytest
import redis
import redis.sentinel
import urllib3
from minio.error import InvalidResponseError, ServerError

from communitree_shared.errors import InfrastructureError, ServerRefuses
from communitree_shared.faults import NoCredentials, of_redis, of_s3


def test_a_server_that_is_away_does_not_refuse() -> None:
    for error in (
        ServerError("server failed", 503),
        InvalidResponseError(502, "text/html", "<html>"),
        urllib3.exceptions.ProtocolError("Connection aborted."),
        ConnectionResetError("reset"),
        TimeoutError("slow"),
    ):
        assert type(of_s3(error, "h:1", "b")) is InfrastructureError, error
    for fault in (redis.ConnectionError("refused"), redis.TimeoutError("slow"), OSError("reset"),
                  redis.BusyLoadingError("LOADING"), redis.ReadOnlyError("READONLY"),
                  redis.ResponseError("BUSY a script runs"),
                  redis.ResponseError("UNBLOCKED force unblock from blocking operation, instance state changed"),
                  redis.ResponseError("ERR Error running script: @user_script: 7: -READONLY You can't write against a "
                                      "read only replica.")):  # fmt: skip
        assert type(of_redis(fault, "h:1")) is InfrastructureError, fault


def test_what_someone_must_act_on_names_the_remedy() -> None:
    for error, remedy in (
        (ServerError("server failed", 507), "space"),
        (InvalidResponseError(403, "text/plain", ""), "COMMUNITREE_S3_SECRET_KEY"),
        (NoCredentials("none"), "role"),
        (urllib3.exceptions.SSLError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"), "COMMUNITREE_S3_CA_BUNDLE"),
    ):
        found = of_s3(error, "h:1", "b")
        assert isinstance(found, ServerRefuses), error
        assert remedy in found.hint
    for fault, remedy in (
        (redis.AuthenticationError("invalid username-password pair"), "COMMUNITREE_REDIS_URL"),
        (redis.ResponseError("NOAUTH Authentication required."), "COMMUNITREE_REDIS_URL"),
        (redis.exceptions.NoPermissionError("this user has no permissions"), "operations.md"),
        (redis.exceptions.OutOfMemoryError("command not allowed"), "maxmemory"),
        (redis.ResponseError("OOM command not allowed when used memory > 'maxmemory'. script: x"), "maxmemory"),
        (redis.ResponseError("MISCONF Redis is configured to save"), "disk"),
        (redis.ConnectionError("[SSL: CERTIFICATE_VERIFY_FAILED]"), "COMMUNITREE_REDIS_CA_BUNDLE"),
        (redis.ConnectionError("tlsv13 alert certificate required (_ssl.c:2580)"), "COMMUNITREE_REDIS_CERTIFICATE"),
    ):
        refused = of_redis(fault, "h:1")
        assert isinstance(refused, ServerRefuses), fault
        assert remedy in refused.hint


def test_a_mistake_of_our_own_is_no_outage() -> None:
    assert of_redis(redis.ResponseError("WRONGTYPE Operation against a key"), "h:1") is None
    assert of_redis(redis.DataError("Invalid input"), "h:1") is None


def test_a_primary_that_no_sentinel_knows_is_away_and_told_of_in_a_line() -> None:
    sentinel = redis.sentinel.Sentinel([("127.0.0.1", 1)])
    with pytest.raises(redis.sentinel.MasterNotFoundError) as none:
        sentinel.discover_master("main")
    found = of_redis(none.value, "the sentinels' main")
    assert type(found) is InfrastructureError
    assert found.message == "Redis at the sentinels' main does not answer: No master found for 'main'."
