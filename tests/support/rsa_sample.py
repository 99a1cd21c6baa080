"""A private key for tests, made anew for each run."""

from __future__ import annotations

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _pem(form: serialization.PrivateFormat) -> str:
    plain = serialization.NoEncryption()
    return KEY.private_bytes(serialization.Encoding.PEM, form, plain).decode()


PRIVATE_KEY = _pem(serialization.PrivateFormat.PKCS8)
"""As the files of service accounts hold it."""
OLD_PRIVATE_KEY = _pem(serialization.PrivateFormat.TraditionalOpenSSL)
"""As PKCS #1."""
PUBLIC_KEY = KEY.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)
