"""Addresses: what is read, what is refused, and which IP addresses are nobody's on the internet."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from isogloss.media.address import is_public, parse_address
from isogloss.media.api import MediaError
from isogloss.media.hosts import HostRule, normal_host
from isogloss.media.policy import MediaPolicy, parse_hosts


@pytest.mark.parametrize(
    ("text", "authority", "target"),
    [
        ("http://example.org", "example.org", "/"),
        ("HTTPS://EXAMPLE.org./a?b=c#d", "example.org", "/a?b=c"),
        ("http://example.org:80?q", "example.org", "/?q"),
        ("http://example.org:8080/@x:y", "example.org:8080", "/@x:y"),
        ("http://Bücher.example/ü", "xn--bcher-kva.example", "/%C3%BC"),
        ("http://[2001:0DB8::0:1]:81/", "[2001:db8::1]:81", "/"),
        ("http://\uff11.\uff11.\uff11.\uff11/", "1.1.1.1", "/"),
        ("http://a_b.example/%2e%2E/", "a_b.example", "/%2e%2E/"),
    ],
)
def test_addresses_are_read_in_one_spelling(text: str, authority: str, target: str) -> None:
    address = parse_address(text)
    assert (address.authority, address.target) == (authority, target)


@pytest.mark.parametrize(
    "text",
    [
        *"""http:// http:/a http:a ftp://a/ http://a@b/ http://a:b@c/ http://a\\@b/ http://a\\b/
        http://a%2eb/ http://[::1%25eth0]/ http://[::1 http://::1/ http://a:/ http://a:0/ http://a:65536/ http://a:1:2/
        http://a..b/ http://-a/ http://.a/ http://127.1/ http://0x7f.0.0.1/ http://0177.0.0.1/ http://2130706433/ http://127.0.0.1.0/
        http://0x7f000001/ http://1.2.3.256/ http://a[b]/ http://[a]/ http://[v1.a]/ http://xn--/ http://a<b/""".split(),
        "http://a b/",
        " http://a/",
        "http://a/\n",
        "http://a\t/",
        "http://a/\x00",
        "http://a/\u3000",
        "http://a\u200b/",
        "http://" + "a" * 64 + "/",
        "http://" + "a." * 130 + "/",
        "http://\u2100.org/",
        "http://a/\ud800",
    ],
)
def test_tricks_are_refused(text: str) -> None:
    with pytest.raises(MediaError, match="not_allowed"):
        parse_address(text)


@given(st.text(max_size=40), st.sampled_from(["http://", "https://a.example", "http://a.example/", "http://["]))
def test_any_text_is_an_address_or_is_refused(text: str, start: str) -> None:
    try:
        address = parse_address(start + text)
    except MediaError:
        return
    assert address.host.isascii()
    assert normal_host(address.host) == address.host
    assert address.target.isascii()
    assert not set(address.host) & set("/?#@\\%")
    assert not set(address.target) & set(" \r\n\t\\#")
    assert parse_address(f"{address.scheme}://{address.authority}{address.target}") == address


@pytest.mark.parametrize(
    "text",
    """127.0.0.1 127.255.255.254 10.1.2.3 172.16.0.1 172.31.255.255 192.168.0.1 169.254.169.254
    100.64.0.1 100.100.100.200 0.0.0.0 0.1.2.3 224.0.0.1 239.255.255.255 240.0.0.1
    255.255.255.255 192.0.0.192 192.0.2.1 198.18.0.1 198.51.100.1 203.0.113.1 192.88.99.1
    168.63.129.16 :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 fe80::1
    fe80::1%lo fc00::1 fd00:ec2::254 ff02::1 2001::1 2001:0:7f00:1:: 2001:db8::1
    2002:7f00:1:: 2002:808:808:: 64:ff9b::127.0.0.1 64:ff9b::10.0.0.1 64:ff9b:1::8.8.8.8 3fff::1 100::1
    nonsense 127.1""".split(),
)
def test_addresses_of_this_machine_or_its_network(text: str) -> None:
    assert not is_public(text)


@pytest.mark.parametrize("text", "8.8.8.8 172.32.0.1 100.128.0.1 2606:4700::1111 2a00:1450::1 64:ff9b::8.8.8.8".split())
def test_addresses_of_the_internet(text: str) -> None:
    assert is_public(text)


@given(st.ip_addresses())
def test_nothing_is_public_that_the_standard_library_calls_private(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if (
        address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_reserved
    ):
        mapped = address in ipaddress.ip_network("64:ff9b::/96")
        assert mapped or not is_public(str(address))


def test_redirects_keep_to_the_rules_of_addresses() -> None:
    address = parse_address("https://a.example:444/b/c?d")
    assert address.follow("e").target == "/b/e"
    assert address.follow("/e?f").authority == "a.example:444"
    assert address.follow("//b.example/").authority == "b.example"
    for location in (
        "http://a.example/",
        "file:///etc/passwd",
        "https://u@a.example/",
        "https://[",
        "//a\\b",
        "data:,x",
    ):
        with pytest.raises(MediaError, match="not_allowed"):
            address.follow(location)


def test_hosts_of_the_list() -> None:
    rules = parse_hosts(" Upload.Example.org. , 1.2.3.4,[::1]:80, 2001:DB8::1,b.example:8080,, Bücher.example")
    assert rules == (
        HostRule("upload.example.org"),
        HostRule("1.2.3.4"),
        HostRule("[::1]", 80),
        HostRule("[2001:db8::1]"),
        HostRule("b.example", 8080),
        HostRule("xn--bcher-kva.example"),
    )
    assert rules[0].allows("upload.example.org", 81)
    assert not rules[0].allows("x.upload.example.org", 80)
    assert not rules[4].allows("b.example", 80)
    assert parse_hosts("") == ()


@pytest.mark.parametrize(
    "text", ["*.example.org", "http://a.example", "a.example/", "127.1", "a b", "a:0", "a:99999", "u@a"]
)
def test_entries_that_are_no_hosts_are_named(text: str) -> None:
    with pytest.raises(ValueError, match="not a host or an IP address"):
        parse_hosts(f"a.example,{text}")


def test_bounds_of_a_policy_are_checked() -> None:
    with pytest.raises(ValueError, match="workers"):
        MediaPolicy(workers=0)
    with pytest.raises(ValueError, match="decode_seconds"):
        MediaPolicy(decode_seconds=float("nan"))
    assert MediaPolicy(redirects=0).redirects == 0
