"""Names of hosts, in the one spelling in which they are compared and connected to."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

import idna

_NAME = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_ENTRY = re.compile(r"(?P<host>\[[^\]]*\]|[^:]*)(:(?P<port>[0-9]{1,5}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class HostRule:
    """An entry of the list of hosts that media may come from."""

    host: str
    port: int | None = None
    """None for any."""

    def allows(self, host: str, port: int) -> bool:
        """Whether it names this host, both in normal form."""
        return self.host == host and self.port in (None, port)


def normal_host(text: str) -> str:
    """A host as an address writes it, in normal form: an IDNA name, an IPv4 address, or an IPv6 address in brackets.

    Raises ValueError for anything else. Among that are the many other ways to write an IPv4 address (127.1, 0x7f000001,
    octal, decimal), which programs read differently.
    """
    if text.startswith("["):
        return _ipv6(text)
    name = _ascii(text).removesuffix(".")
    if len(name) > 253 or not _NAME.fullmatch(name):
        raise ValueError("not a host")
    if _NUMBER.fullmatch(name.rpartition(".")[2]):
        return str(ipaddress.IPv4Address(name))
    return name


def parse_rule(text: str) -> HostRule:
    """An entry as an operator writes it: `host`, `host:port`, or an IP address. Raises ValueError."""
    text = text.strip()
    if text.count(":") > 1 and not text.startswith("["):
        text = f"[{text}]"
    match = _ENTRY.fullmatch(text)
    if match is None:
        raise ValueError("not a host")
    port = None if match["port"] is None else int(match["port"])
    if port is not None and not 0 < port < 2**16:
        raise ValueError("not a port")
    return HostRule(normal_host(match["host"]), port)


def _ascii(text: str) -> str:
    if text.isascii():
        return text.lower()
    try:
        return idna.encode(text, uts46=True).decode().lower()
    except idna.IDNAError as error:
        raise ValueError("not a host") from error


def _ipv6(text: str) -> str:
    if not text.endswith("]") or "%" in text:
        raise ValueError("not a host")
    return f"[{ipaddress.IPv6Address(text[1:-1]).compressed}]"
