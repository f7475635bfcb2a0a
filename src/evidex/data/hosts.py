"""Which addresses lie inside, on this machine or its network, where what strangers have written must not lead."""

from __future__ import annotations

import ipaddress
import socket
from functools import lru_cache
from urllib.parse import unquote, urlsplit


def leads_inside(target: str, source: str) -> bool:
    """Whether ``target`` names a machine inside, and ``source``, which leads there, lies outside.

    A target is judged by its name alone, so that nobody is asked for the address of every link; a source by the
    address that its name stands for, so that an intranet with names may lead to its machines by number.
    """
    return _is_inside(_host(target)) and not _lies_inside(_host(source))


def _host(address: str) -> str:
    """The name of the machine, as it is looked up: escapes and letters of other scripts may stand for a plain one."""
    try:
        host = unquote(urlsplit(address).hostname or "")
        return (host if host.isascii() else host.encode("idna").decode()).lower().rstrip(".")
    except ValueError:  # no address at all; nobody can be asked there
        return ""


def _is_inside(host: str) -> bool:
    if host == "localhost" or host.endswith((".localhost", ".localdomain")):
        return True
    try:
        # As the system reads numbers: also 127.1 and 2130706433.
        return _is_private(ipaddress.IPv4Address(socket.inet_aton(host)))
    except (OSError, ValueError):
        pass
    try:
        return _is_private(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        return False


def _is_private(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    plain = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return not (plain or address).is_global


@lru_cache(maxsize=256)
def _lies_inside(host: str) -> bool:
    """Whether the machine called ``host`` does; one whose name nobody here knows lies outside."""
    if _is_inside(host):
        return True
    try:
        found = socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP)
    except (OSError, UnicodeError):
        return False
    return all(_is_inside(str(place[4][0])) for place in found)
