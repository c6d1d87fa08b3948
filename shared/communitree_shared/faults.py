"""What an exception of a server's client means, in our words: is it away, or does it refuse us, and what helps?"""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime

import redis
import urllib3
from minio.error import InvalidResponseError, MinioException, S3Error, ServerError

from communitree_shared.errors import InfrastructureError, ServerRefuses

_KEYS = "Check COMMUNITREE_S3_ACCESS_KEY and COMMUNITREE_S3_SECRET_KEY (or the role), and what they may do"

_CLOCK = "Set the clocks of both (NTP): a store takes no request whose time is off by more than 15 minutes."

#: Codes of S3 that someone must act on → what to do. Everything else is taken for an outage.
_S3_REFUSALS = {
    **dict.fromkeys(
        ("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken",
         "TokenRefreshRequired", "AllAccessDisabled", "AccountProblem", "InvalidSecurity", "NotSignedUp"),
        _KEYS + " in the bucket {bucket!r}: s3:GetObject, s3:PutObject, s3:DeleteObject, s3:ListBucket.",
    ),
    **dict.fromkeys(
        ("NoSuchBucket", "InvalidBucketName"),
        "Make the bucket {bucket!r}, or set COMMUNITREE_S3_BUCKET to one that exists.",
    ),
    **dict.fromkeys(
        ("RequestTimeTooSkewed", "RequestExpired"),
        _CLOCK,
    ),
    **dict.fromkeys(
        ("XMinioStorageFull", "InsufficientStorage", "QuotaExceeded", "XMinioAdminBucketQuotaExceeded",
         "XMinioDiskFull", "StorageFull"),
        "Give it space (`communitree gc` removes what nothing needs).",
    ),
    **dict.fromkeys(
        ("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"),
        "Check COMMUNITREE_S3_REGION and COMMUNITREE_S3_ENDPOINT.",
    ),
}  # fmt: skip

#: HTTP states that say the same without a code: 507 is "Insufficient Storage".
_STATES = {507: "InsufficientStorage", 401: "AccessDenied", 403: "AccessDenied"}

#: What OpenSSL says of a certificate that is not trusted or not there, and of a server that speaks no TLS.
_TLS = ("CERTIFICATE_VERIFY_FAILED", "CERTIFICATE_REQUIRED", "certificate required", "WRONG_VERSION_NUMBER")


class NoCredentials(Exception):
    """No provider has credentials for the object store."""


def of_s3(error: Exception, endpoint: str, bucket: str) -> InfrastructureError:
    """Return what an exception of the S3 client means."""
    code, words = _s3_code(error)
    if code in _S3_REFUSALS and (off := _clock_off(error, code)):
        return ServerRefuses(
            f"The clock of this machine is {off} the clock of the object store at {endpoint}, which refuses us.",
            hint=_CLOCK,
        )
    if code in _S3_REFUSALS:
        return ServerRefuses(
            f"The object store at {endpoint} refuses us: {code}{f' ({words})' if words else ''}.",
            hint=_S3_REFUSALS[code].format(bucket=bucket),
        )
    if isinstance(error, NoCredentials):
        return ServerRefuses(
            f"There are no credentials for the object store at {endpoint}: {error}.",
            hint="Set COMMUNITREE_S3_ACCESS_KEY and COMMUNITREE_S3_SECRET_KEY, or give this machine a role.",
        )
    if any(word in str(error) for word in _TLS):
        return ServerRefuses(
            f"No trusted connection to the object store at {endpoint}: {error}.",
            hint="Check COMMUNITREE_S3_SECURE and COMMUNITREE_S3_CA_BUNDLE.",
        )
    return InfrastructureError(
        f"The object store at {endpoint} does not serve us: {_short(error)}.",
        hint="Check that it runs and has space, and COMMUNITREE_S3_ENDPOINT.",
    )


def no_conditions(endpoint: str, said: str) -> ServerRefuses:
    """Return why a store cannot be used that does not write an object only where there is none."""
    return ServerRefuses(
        f"The object store at {endpoint} has no conditional writes (If-None-Match: {said}): two workers could both "
        "write an answer.",
        hint="Use a store that has them: AWS S3, MinIO, SeaweedFS, Ceph, R2 … (docs/operations.md, `Managed S3`).",
    )


def _clock_off(error: Exception, code: str) -> str:
    """Return how far our clock is from that of a store that refuses us; "" where that is not why.

    The answer to a HEAD has no body that would say so.
    """
    response = getattr(error, "response", None)
    date = (getattr(response, "headers", None) or {}).get("date", "")
    try:
        off = time.time() - parsedate_to_datetime(date).timestamp()
    except ValueError:
        return ""
    named = code in {"RequestTimeTooSkewed", "RequestExpired"}
    if abs(off) < (60 if named else 14 * 60):
        return ""
    minutes = round(abs(off) / 60)
    return f"{minutes:,} min {'ahead of' if off > 0 else 'behind'}"


def _s3_code(error: Exception) -> tuple[str, str]:
    if isinstance(error, S3Error):
        return str(error.code), str(error.message or "")
    state = error.status_code if isinstance(error, ServerError) else 0
    if isinstance(error, InvalidResponseError):
        state = error._code
    return _STATES.get(state, ""), ""


S3_FAULTS = (MinioException, urllib3.exceptions.HTTPError, NoCredentials, OSError)

_REDIS_AWAY = (
    redis.ConnectionError, redis.TimeoutError, redis.BusyLoadingError, redis.ReadOnlyError,
    redis.exceptions.MasterDownError, redis.exceptions.TryAgainError,
)  # fmt: skip

_REDIS_TLS = (
    "Check that the URL begins with rediss:// (sentinels://) where the server speaks TLS, COMMUNITREE_REDIS_CA_BUNDLE, "
    "and COMMUNITREE_REDIS_CERTIFICATE where it wants a certificate of ours."
)

#: Refusals that pass by themselves: a script of another holds the server up, a replica is behind, a primary became one
#: while we waited in a blocking call.
_FOR_NOW = ("BUSY ", "UNBLOCKED ", "NOREPLICAS ", "LOADING ", "MASTERDOWN ")


def of_redis(error: Exception, where: str) -> InfrastructureError | None:
    """Return what an exception of the Redis client means; None for one that is our own mistake."""
    said = _short(error)
    if said.startswith("NOAUTH") or "HELLO must be called with the client already authenticated" in said:
        said = "it wants a password, and none is set"
        hint = (
            "Put it into COMMUNITREE_REDIS_URL: redis://:password@host:6379/0 (sentinels: "
            "COMMUNITREE_REDIS_SENTINEL_PASSWORD)."
        )
    elif isinstance(error, redis.AuthenticationError) or said.startswith("WRONGPASS"):
        hint = "Check user and password in COMMUNITREE_REDIS_URL (sentinels: COMMUNITREE_REDIS_SENTINEL_PASSWORD)."
    elif isinstance(error, redis.exceptions.NoPermissionError) or said.startswith("NOPERM"):
        hint = "Give the user what docs/operations.md lists under `Managed Redis`."
    elif isinstance(error, redis.exceptions.OutOfMemoryError) or "OOM command not allowed" in said:
        hint = "Raise maxmemory, or free memory: ended jobs go after COMMUNITREE_JOB_TTL."
    elif said.startswith("MISCONF"):
        hint = "Redis cannot write to its disk: give it space, see its log."
    elif any(word in said for word in _TLS):
        hint = _REDIS_TLS
    elif isinstance(error, (*_REDIS_AWAY, OSError)) or said.startswith(_FOR_NOW) or "-READONLY " in said:
        return InfrastructureError(
            f"Redis at {where} does not answer: {said}.", hint="Check that it runs, and COMMUNITREE_REDIS_URL."
        )
    else:
        return None
    return ServerRefuses(f"Redis at {where} refuses us: {said}.", hint=hint)


def _short(error: Exception) -> str:
    # Where no sentinel knows a primary, redis-py adds the whole configuration of its clients.
    return (str(error) or type(error).__name__).split(" : <redis.")[0][:300].rstrip(".")
