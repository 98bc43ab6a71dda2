"""The formats of JSON Schema as terminals of Lark, for texts that are written without quotes.

Each allows nothing but texts of its format, and all of them that are in use: no second 60, no comments in addresses,
host names in ASCII without names in Punycode, no host at all where a `uri` may have one of a future kind.
"""

from __future__ import annotations

_LEAP = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_DATE = (
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    f"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP}-02-29)"
)
_HOUR = "(?:[01][0-9]|2[0-3])"
_TIME = rf"{_HOUR}:[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?(?:[Zz]|[+-]{_HOUR}:[0-5][0-9])"
_CLOCK = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
_DAYS = "(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)"

# Two hyphens in a row may begin a name in Punycode, which has rules of its own.
_LABEL = "[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*"
_HOST = rf"{_LABEL}(?:\.{_LABEL})*"
# Lengths stand apart: counted inside, each length of one part would be told apart from each of another.
_HOST_SIZES = r"(?:[^.@]{1,63}\.)*[^.@]{1,63}"
_NAME = r"[A-Za-z0-9!#$%&'*+\/=?^_`{|}~-]+"

_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_BYTE}(?:\.{_BYTE}){{3}}"
_H16 = "[0-9A-Fa-f]{1,4}"
_LAST = f"(?:{_H16}:{_H16}|{_IPV4})"
_IPV6 = "|".join(
    [
        f"(?:{_H16}:){{6}}{_LAST}",
        *(
            f"(?:{f'(?:{_H16}:){{0,{before - 1}}}{_H16}' if before else ''})?::(?:{_H16}:){{{5 - before}}}{_LAST}"
            for before in range(6)
        ),
        f"(?:(?:{_H16}:){{0,5}}{_H16})?::{_H16}",
        f"(?:(?:{_H16}:){{0,6}}{_H16})?::",
    ]
)

_CODED = "%[0-9A-Fa-f]{2}"
_FREE = r"A-Za-z0-9._~!$&'()*+,;=\-"
_STEP = f"(?:[{_FREE}:@]|{_CODED})"
_PLACE = rf"(?:(?:[{_FREE}:]|{_CODED})*@)?(?:\[(?:{_IPV6})\]|(?:[{_FREE}]|{_CODED})*)(?::[0-9]*)?"
_PATH = rf"(?:\/\/{_PLACE}(?:\/{_STEP}*)*|\/?(?:{_STEP}+(?:\/{_STEP}*)*)?)"
_NOTE = rf"(?:{_STEP}|[\/?])*"

FORMAT_TERMS = {
    "date": f"/{_DATE}/",
    "time": f"/{_TIME}/",
    "date-time": f"/{_DATE}[Tt]{_TIME}/",
    "duration": f"/P(?:[0-9]+W|{_CLOCK}|{_DAYS}(?:{_CLOCK})?)/",
    "email": rf"/{_NAME}(?:\.{_NAME})*@{_HOST}/ & /[^@]{{1,64}}@{_HOST_SIZES}/ & /.{{1,254}}/",
    "hostname": f"/{_HOST}/ & /{_HOST_SIZES}/ & /.{{1,253}}/",
    "ipv4": f"/{_IPV4}/",
    "ipv6": f"/{_IPV6}/",
    "uuid": "/[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}/",
    "uri": rf"/[A-Za-z][A-Za-z0-9+.-]*:{_PATH}(?:\?{_NOTE})?(?:#{_NOTE})?/",
}
