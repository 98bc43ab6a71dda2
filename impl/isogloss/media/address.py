"""Addresses of media on the web, read once and strictly: what was checked is what is connected to."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import quote, urljoin

from isogloss.media.api import MediaError
from isogloss.media.hosts import normal_host

_ADDRESS = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]*\]|[^/?#:@%\[\]]+)(:(?P<port>[0-9]{1,5}))?(?P<target>[/?][^#]*)?(#.*)?",
    re.IGNORECASE,
)
_SAFE = "%/:?[]@!$&'()*+,;=-._~"
_PORTS = {"http": 80, "https": 443}

_PRIVATE = [
    ipaddress.IPv4Network(text)
    for text in (
        # of IANA's list of special addresses, those that are not somebody's on the internet
        "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24"
        " 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15"
        " 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4"
        # a cloud's metadata at an address that looks public
        " 168.63.129.16/32"
    ).split()
]
_PUBLIC_6 = ipaddress.IPv6Network("2000::/3")
"""All that is given out; loopback, private, link-local, multicast and mapped addresses lie elsewhere."""
_SPECIAL_6 = [
    ipaddress.IPv6Network(text)
    for text in ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20", "3ffe::/16")
]
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class Address:
    """An http(s) address."""

    scheme: str
    host: str
    """In normal form; see `hosts`."""
    port: int
    target: str
    """Path and query, in ASCII."""

    @property
    def authority(self) -> str:
        """Host and port as a `Host` header has them."""
        return self.host if self.port == _PORTS[self.scheme] else f"{self.host}:{self.port}"

    def follow(self, location: str) -> Address:
        """Where a redirect leads. Raises MediaError: not_allowed, also for one that gives up encryption."""
        base = f"{self.scheme}://{self.authority}{self.target}"
        try:
            address = parse_address(urljoin(base, location))
        except ValueError as error:
            raise MediaError("not_allowed") from error
        if self.scheme == "https" and address.scheme != "https":
            raise MediaError("not_allowed")
        return address


def parse_address(text: str) -> Address:
    """An address as a request writes it. Raises MediaError: not_allowed.

    Refused are user names, blanks, control characters, backslashes, and hosts that programs read differently.
    """
    match = _ADDRESS.fullmatch(text)
    if match is None or "\\" in text or not text.isprintable() or any(map(str.isspace, text)):
        raise MediaError("not_allowed")
    scheme = match["scheme"].lower()
    port = int(match["port"] or _PORTS[scheme])
    target = quote(match["target"] or "/", safe=_SAFE, errors="strict")
    try:
        host = normal_host(match["host"])
    except ValueError as error:
        raise MediaError("not_allowed") from error
    if not 0 < port < 2**16:
        raise MediaError("not_allowed")
    return Address(scheme, host, port, target if target.startswith("/") else f"/{target}")


def is_public(text: str) -> bool:
    """Whether an IP address belongs to somebody on the internet, rather than to this machine or its network."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:  # a gateway's way to write an IPv4 address
            return is_public(str(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)))
        return address in _PUBLIC_6 and not any(address in network for network in _SPECIAL_6)
    return not any(address in network for network in _PRIVATE)
