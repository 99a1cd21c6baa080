"""A certificate authority for the tests of TLS."""

from __future__ import annotations

import pytest

from tests.support.http_exchange import (
    CertificateAuthority,
)


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    return CertificateAuthority()
