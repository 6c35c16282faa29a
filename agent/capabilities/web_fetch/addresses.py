"""Which addresses are the public web: everything that could be this machine, its network or its host is not."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address

_TRANSLATED = IPv6Network("64:ff9b::/96")
"""RFC 6052: the last 32 bits are an IPv4 address, which decides."""
_LOCAL = (
    ip_network("64:ff9b:1::/48"),  # RFC 8215, translation inside a network
    ip_network("168.63.129.16/32"),  # a cloud's metadata service on a public address
    ip_network("fec0::/10"),  # RFC 3879, the old site-local addresses
)


def is_public(address: Address) -> bool:
    """True for an address of the public internet.

    False for private, shared, loopback, link-local, multicast, reserved and documentation ranges (the IANA registries
    of special-purpose addresses), for metadata services, and for IPv6 forms that carry such an IPv4 address.
    """
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address.teredo is not None:
            return False
        if inner is None and address in _TRANSLATED:
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is None and int(address) >> 32 == 0:
            return False  # RFC 4291: IPv4-compatible, and :: and ::1
        if inner is not None:
            return is_public(inner)
    if any(address.version == network.version and address in network for network in _LOCAL):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def literal(host: str) -> Address | None:
    """The address a host is written as; None when it is a name."""
    try:
        return ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None
