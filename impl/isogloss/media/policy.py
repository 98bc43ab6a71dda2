"""What this server allows itself to read and to decode."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from isogloss.media.hosts import HostRule, parse_rule

MIB = 2**20


@dataclass(frozen=True, slots=True)
class MediaPolicy:
    """Bounds for all media of all requests. Raises ValueError, which names the field, for what cannot be."""

    allowed_hosts: tuple[HostRule, ...] = ()
    """Hosts that media are fetched from; empty for none. None of them may lie at a private address."""
    folder: Path = Path("/data/multimodal_inputs")
    """The only folder that local files are read from. It need not exist."""
    connect_seconds: float = 5.0
    idle_seconds: float = 10.0
    """That a host may send nothing."""
    fetch_seconds: float = 120.0
    """For a whole download, with its redirects."""
    redirects: int = 3
    downloads: int = 16
    """At once; the others wait."""
    loads: int = 256
    """Media in work at once; more are refused."""
    bytes_in_flight: int = 1024 * MIB
    """Of all media in work, as they were got and before they are decoded."""
    disk_reserve: float = 1.5
    """Free disk that there must be before anything is kept there, in multiples of what may still be in flight."""
    memory_bytes: int = 8 * MIB
    """Of one medium, above which it is kept on disk."""
    pixels: int = 64_000_000
    """Of a picture or a frame."""
    video_seconds: float = 3600.0
    video_frames: int = 250_000
    audio_seconds: float = 7200.0
    decode_seconds: float = 60.0
    """For one medium, after which its worker is killed."""
    decode_memory: int = 1536 * MIB
    """Bytes of address space of a worker, beside what it starts with."""
    decoded_bytes: int = 512 * MIB
    """Of one medium as the model gets it."""
    decoded_in_flight: int = 2048 * MIB
    """Of all media that requests hold decoded."""
    queue_seconds: float = 30.0
    """That a medium may wait for a worker."""
    workers: int = 2
    """Media that are decoded at once; each worker is a process that starts when it is first needed."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            low = 0 if field.name == "redirects" else 1e-3
            if isinstance(value, int | float) and not low <= value < 2**63:
                raise ValueError(f"{field.name} is out of range")
        if not self.folder.is_absolute():
            raise ValueError("folder must be an absolute path")


def parse_hosts(text: str) -> tuple[HostRule, ...]:
    """Hosts between commas, as `ALLOWED_MEDIA_DOMAINS_ENV` holds them. Raises ValueError, which names the entry."""
    return tuple(map(_rule, filter(str.strip, text.split(","))))


def _rule(text: str) -> HostRule:
    try:
        return parse_rule(text)
    except ValueError as error:
        raise ValueError(f"not a host or an IP address: {text.strip()[:64]!r}") from error
