"""Which addresses a URL may lead to. A URL that data had a hand in reaches public addresses only.

The address that was checked is the one connected to, so a name that resolves differently a moment later
gains nothing.
"""

from __future__ import annotations

import ipaddress
import socket

import anyio

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_SIXTOFOUR = ipaddress.ip_network("2002::/16")


async def resolve(host: str, port: int) -> tuple[str, ...]:
    """The numeric addresses of a host, in the order to try. Raises OSError (`socket.gaierror` for names)."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(entry[4][0]) for entry in found]
    return tuple(dict.fromkeys(addresses))


def is_public(text: str) -> bool:
    """True for an address of the open internet: not private, loopback, link-local, multicast or reserved.

    Addresses that carry another one inside (mapped, NAT64, 6to4) are judged by that one.
    """
    try:
        address: Address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    inner = _inside(address)
    return _is_open(address) if inner is None else _is_open(inner)


def _is_open(address: Address) -> bool:
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _inside(address: Address) -> ipaddress.IPv4Address | None:
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address in _SIXTOFOUR:
        return ipaddress.IPv4Address((int(address) >> 80) & 0xFFFFFFFF)
    return None
