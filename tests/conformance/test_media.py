"""What the suite sends as pictures, and where it makes a server look."""

from __future__ import annotations

import base64
import io
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

import httpx
import isogloss_api
import pytest
from isogloss_conformance.faults.media_refusals import ELSEWHERE, FIELDS, OWN
from isogloss_conformance.faults.trap import trap
from isogloss_conformance.pictures import BLUE, picture, samples
from PIL import Image

NOBODY = [ip_network(text) for text in ("127.0.0.0/8", "::1/128", "169.254.0.0/16", "fe80::/10", "192.0.2.0/24")]


def test_a_picture_can_be_decoded() -> None:
    head, _, data = picture(BLUE, side=3).partition(",")
    assert head == "data:image/png;base64"
    found = Image.open(io.BytesIO(base64.b64decode(data)))
    assert found.size == (3, 3)
    assert found.getpixel((2, 2)) == BLUE


def test_there_is_a_sample_for_each_member_of_a_dialect_with_media() -> None:
    assert samples(isogloss_api.document("mindie")).keys() == {*FIELDS, "input_audio"}
    assert samples(isogloss_api.document("nim")) == {}


def test_a_trap_counts_visitors() -> None:
    with trap() as laid:
        assert laid.visits == 0
        answer = httpx.get(f"http://127.0.0.1:{laid.port}/picture.png", trust_env=False)
    assert (laid.visits, answer.headers["content-type"]) == (1, "image/png")


@pytest.mark.parametrize("address", [*(form.format(port=9) for form in OWN), *ELSEWHERE])
def test_no_address_leads_to_anybody_else(address: str) -> None:
    host = urlsplit(address).hostname if "://" in address else None
    written_otherwise = {"localhost", "2130706433", "0x7f000001", "127.1", "0.0.0.0", "::ffff:127.0.0.1"}
    if address.startswith(("http", "ftp")) and host not in written_otherwise:
        assert any(ip_address(str(host)) in network for network in NOBODY)
    else:
        assert host is None or host in {*written_otherwise, ".."} or address.startswith("file:")
