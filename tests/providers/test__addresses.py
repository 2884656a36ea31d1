"""Which addresses are of the open internet."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonogo.providers._addresses import is_public, resolve


@pytest.mark.parametrize("address", ["93.184.216.34", "8.8.8.8", "2606:4700::6810:84e5", "64:ff9b::808:808"])
def test_public_addresses_are_public(address: str) -> None:
    """The open internet, also through NAT64."""
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    """
    127.0.0.1 127.8.8.8 0.0.0.0 10.1.2.3 172.16.0.1 192.168.0.1 169.254.169.254 100.64.0.1 192.0.2.1
    198.18.0.1 224.0.0.1 240.0.0.1 255.255.255.255 ::1 :: fe80::1 fe80::1%eth0 fc00::1 ff02::1 2001:db8::1
    ::ffff:127.0.0.1 ::ffff:10.0.0.1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 2002:7f00:1:: 2002:a00:1::
    not-an-address
    """.split(),
)
def test_all_others_are_not(address: str) -> None:
    """Loopback, private, link-local (the metadata service), shared, test, multicast, reserved, and in disguise."""
    assert not is_public(address)


@given(st.ip_addresses(v=4).filter(lambda address: not address.is_global))
def test_no_disguise_makes_an_address_public(address: object) -> None:
    """Mapped into IPv6 it stays what it is."""
    assert not is_public(f"::ffff:{address}")


@pytest.mark.parametrize("host", ["127.0.0.1", "2130706433", "0x7f.1", "017700000001"])
def test_numbers_in_odd_spellings_are_looked_up_like_the_system_does(host: str) -> None:
    """All of these connect to loopback, so all are seen as loopback."""
    assert anyio.run(resolve, host, 80) == ("127.0.0.1",)
