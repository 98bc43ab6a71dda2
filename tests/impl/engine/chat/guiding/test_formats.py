"""Formats of texts without quotes: what is allowed is right, and what is in use is allowed."""

from __future__ import annotations

import random

import jsonschema_rs
import pytest
from isogloss.engine.api import Guide
from isogloss.engine.chat.guiding.formats import FORMAT_TERMS
from isogloss.engine.guides.schema import FORMATS
from isogloss.engine.guides.trial import allowed_ids, compiled, tried_grammar
from isogloss.engine.scripted.vocabulary import guide_vocabulary

RIGHT = {
    "date": "2024-02-29 2000-02-29 2023-12-31 0001-01-01",
    "time": "12:00:00Z 23:59:59.123+02:00 00:00:00-00:00",
    "date-time": "2024-02-29T12:00:00Z 2023-01-01t00:00:00.5z 2023-06-30T23:59:59+05:30",
    "duration": "P1Y2M3D PT1H P2W P1DT12H PT1M1S",
    "email": "a.b+c@example.com joe@localhost x_y@sub.example.co.uk",
    "hostname": "example.com a-b.c localhost 1.2",
    "ipv4": "127.0.0.1 255.255.255.255 0.0.0.0",
    "ipv6": ":: ::1 fe80::1 2001:db8:0:0:0:0:0:1 1:: ::ffff:1.2.3.4 1:2:3:4:5:6:7:: 1:2:3:4:5:6:1.2.3.4 a:b::c:d",
    "uuid": "123e4567-e89b-12d3-a456-426614174000 123E4567-E89B-12D3-A456-426614174000",
    "uri": "https://example.com/a?b=c#d mailto:a@b.c urn:isbn:1 http://[::1]:80/ file:///etc/x http://u:p@h:1/%20 a:",
}
WRONG = {
    "date": "2023-02-29 1900-02-29 2024-13-01 2024-04-31 24-01-01",
    "time": "12:00:00 24:00:00Z 12:60:00Z",
    "date-time": "2024-02-29 2024-02-29T12:00:00 2024-02-30T12:00:00Z",
    "duration": "P PT P1H 1D P1W1D",
    "email": f"a a@ @b a..b@c .a@b {'a' * 65}@b.c",
    "hostname": f"-a a- a..b a_b .a {'a' * 64} xn--a {'.'.join(['a' * 60] * 5)}",
    "ipv4": "256.1.1.1 1.2.3 01.2.3.4",
    "ipv6": "1:2:3:4:5:6:7 1::2::3 ::: 12345:: 1:2:3:4:5:6:7:8:9 1:2:3:4:5:6:7:8:: ::1.2.3 1:2:3:4:5:6:7:1.2.3.4",
    "uuid": "123e4567e89b12d3a456426614174000 x",
    "uri": "a //a 1a:b http://[1]/ a:%zz a:<b>",
}


def guide(name: str) -> Guide:
    return Guide("grammar", f"start: TEXT\nTEXT: {FORMAT_TERMS[name]}")


def sampled(guide: Guide, seed: int) -> str | None:
    """A text of a guide, byte by byte; None for one that does not end."""
    tokenizer = guide_vocabulary().tokenizer()
    choose = random.Random(seed)
    matcher = compiled(tokenizer, tried_grammar(tokenizer, guide))
    text = bytearray()
    while len(text) < 100:
        bytes_ = [token for token in allowed_ids(matcher.compute_bitmask(), 256).tolist() if token < 256]
        if matcher.is_accepting() and (not bytes_ or choose.random() < 0.2):
            return text.decode()
        text.append(choose.choice(bytes_))
        matcher.consume_token(text[-1])
    return None


@pytest.mark.parametrize("name", sorted(FORMAT_TERMS))
def test_a_format_agrees_with_a_validator(takes, name: str) -> None:
    validator = jsonschema_rs.Draft202012Validator({"format": name}, validate_formats=True)
    form = guide(name)
    for text in RIGHT[name].split():
        assert validator.is_valid(text)
        assert takes(form, text), text
    for text in ["", *WRONG[name].split()]:
        assert not validator.is_valid(text)
        assert not takes(form, text), text
    texts = [text for seed in range(30) if (text := sampled(form, seed)) is not None]
    assert len(texts) > 15
    assert [text for text in texts if not validator.is_valid(text)] == []


def test_all_formats_are_of_json_schema() -> None:
    assert FORMAT_TERMS.keys() <= FORMATS
