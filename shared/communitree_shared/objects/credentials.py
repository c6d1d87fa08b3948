"""Who we are to the object store: the keys of the settings, else what AWS tools would find on this machine."""

from __future__ import annotations

import os
from typing import Any

import urllib3
from minio.credentials.providers import (
    AWSConfigProvider,
    ChainedProvider,
    EnvAWSProvider,
    IamAwsProvider,
    Provider,
    StaticProvider,
)

from communitree_shared.errors import UsageError
from communitree_shared.faults import NoCredentials
from communitree_shared.settings import Settings


def provider(settings: Settings) -> Provider:
    """Return the provider of a process's credentials; roles are asked for new ones before the old ones end.

    Raises:
        UsageError: one key is set without the other.
    """
    access, secret = settings.s3_access_key.get_secret_value(), settings.s3_secret_key.get_secret_value()
    if access and secret:
        return StaticProvider(access, secret)
    if access or secret:
        missing = "COMMUNITREE_S3_SECRET_KEY" if access else "COMMUNITREE_S3_ACCESS_KEY"
        raise UsageError(f"{missing} is not set, but the other S3 key is.", hint="Set both, or neither to use a role.")
    return _OfTheMachine(settings.s3_region)


class _OfTheMachine(Provider):
    """Environment, the shared credentials file, a web identity, the container's or the instance's role, in turn."""

    def __init__(self, region: str) -> None:
        role = IamAwsProvider(http_client=_http(), region=region, custom_endpoint=_endpoint())
        self._chain: Any = ChainedProvider([EnvAWSProvider(), AWSConfigProvider(), role])

    def retrieve(self) -> Any:
        """Return credentials that are valid now.

        Raises:
            NoCredentials: there are none.
        """
        try:
            return self._chain.retrieve()
        except Exception as error:  # of any of them: a damaged file, a role that is gone
            raise NoCredentials(str(error) or type(error).__name__) from None


def _http() -> urllib3.PoolManager:
    # Where there is no metadata service its address may swallow packets: two seconds are enough on a cloud.
    return urllib3.PoolManager(timeout=urllib3.Timeout(2.0), retries=urllib3.Retry(total=1, backoff_factor=0.2))


def _endpoint() -> str | None:
    """Return where a role is asked for, if the environment says so with the variables of AWS tools."""
    environ = os.environ
    if environ.get("AWS_WEB_IDENTITY_TOKEN_FILE"):
        return environ.get("AWS_ENDPOINT_URL_STS") or None
    if environ.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") or environ.get("AWS_CONTAINER_CREDENTIALS_FULL_URI"):
        return None
    return (environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or "").rstrip("/") or None
