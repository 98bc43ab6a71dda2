"""What a body may be sent as."""

from __future__ import annotations

from collections.abc import Mapping

from isogloss_spec import Fault

_JSON = b"application/json"
_UTF_8 = frozenset({b"utf-8", b"utf8"})


def check_media_type(headers: Mapping[bytes, bytes]) -> None:
    """Let pass JSON in UTF-8 without a content encoding. Raises `unsupported_media_type`."""
    content_type = headers.get(b"content-type", b"")
    if content_type != _JSON and not _is_json(content_type.lower()):
        raise Fault("unsupported_media_type")
    if headers.get(b"content-encoding", b"identity").strip().lower() not in (b"identity", b""):
        raise Fault("unsupported_media_type")


def _is_json(content_type: bytes) -> bool:
    name, *parameters = (part.strip() for part in content_type.split(b";"))
    pairs = [parameter.partition(b"=") for parameter in parameters]
    charsets = {value.strip().strip(b'"') for name, _, value in pairs if name.strip() == b"charset"}
    return name == _JSON and charsets <= _UTF_8
