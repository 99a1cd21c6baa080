"""Our OpenAPI document, judged by openapi-spec-validator, where it is installed."""

from __future__ import annotations

import pytest

from weft.server import OPERATIONS
from weft.server.openapi import openapi_document

pytestmark = pytest.mark.oracle


def test_the_document_of_the_http_api_is_valid() -> None:
    validator = pytest.importorskip("openapi_spec_validator")
    validator.validate(openapi_document(OPERATIONS), cls=validator.OpenAPIV31SpecValidator)
