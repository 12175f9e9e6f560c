//! Which addresses our own requests may reach. URLs to fetch come from registrations and from other
//! providers' metadata; without this judgement they could turn this server against the network it
//! stands in (OWASP: server-side request forgery). Only the address that is dialled counts, never
//! the name it was found by.

use std::net::{IpAddr, Ipv4Addr};

use crate::words::forwarded::Cidr;

/// IPv4 blocks that are not part of the open internet (IANA's special-purpose registry, RFC 6890).
const SPECIAL_IPV4: [Cidr; 15] = [
    Cidr::v4([0, 0, 0, 0], 8),       // this network
    Cidr::v4([10, 0, 0, 0], 8),      // private
    Cidr::v4([100, 64, 0, 0], 10),   // carrier-grade NAT
    Cidr::v4([127, 0, 0, 0], 8),     // loopback
    Cidr::v4([169, 254, 0, 0], 16),  // link-local; clouds tell machine credentials there
    Cidr::v4([172, 16, 0, 0], 12),   // private
    Cidr::v4([192, 0, 0, 0], 24),    // protocol assignments
    Cidr::v4([192, 0, 2, 0], 24),    // documentation
    Cidr::v4([192, 88, 99, 0], 24),  // 6to4 relays
    Cidr::v4([192, 168, 0, 0], 16),  // private
    Cidr::v4([198, 18, 0, 0], 15),   // benchmarks
    Cidr::v4([198, 51, 100, 0], 24), // documentation
    Cidr::v4([203, 0, 113, 0], 24),  // documentation
    Cidr::v4([224, 0, 0, 0], 4),     // multicast
    Cidr::v4([240, 0, 0, 0], 4),     // reserved, broadcast
];

/// Global unicast of IPv6 as allocated so far (RFC 4291 §2.4). Loopback, link-local, unique local,
/// multicast, IPv4-mapped, NAT64 and discard addresses all lie outside.
const GLOBAL_IPV6: Cidr = Cidr::v6([0x2000, 0], 3);

/// Blocks within it that are not part of the open internet.
const SPECIAL_IPV6: [Cidr; 4] = [
    Cidr::v6([0x2001, 0], 23), // protocol assignments: Teredo, benchmarks, ORCHID
    Cidr::v6([0x2001, 0xdb8], 32), // documentation
    Cidr::v6([0x2002, 0], 16), // 6to4: any IPv4 address may be inside
    Cidr::v6([0x3fff, 0], 20), // documentation
];

/// Where NAT64 carries IPv4 addresses (RFC 6052 §2.1).
const NAT64: Cidr = Cidr::v6([0x64, 0xff9b], 96);

/// Whether our own request may go to `address`: to the open internet, or where the operator allows
/// it. Without TLS only this machine may be reached, whatever is allowed.
pub fn may_be_dialled(address: IpAddr, https: bool, allowed: &[Cidr]) -> bool {
    let reachable = is_public(address) || is_allowed(address, allowed);
    reachable && (https || address.to_canonical().is_loopback())
}

/// Whoever allows the NAT64 prefix allows the public addresses behind it, and no others.
fn is_allowed(address: IpAddr, allowed: &[Cidr]) -> bool {
    let named = |address: IpAddr| allowed.iter().any(|block| block.contains(address));
    named(address)
        && behind_nat64(address)
            .map(IpAddr::V4)
            .is_none_or(|inside| is_public(inside) || named(inside))
}

fn is_public(address: IpAddr) -> bool {
    let lies_in = |blocks: &[Cidr]| blocks.iter().any(|block| block.contains(address));
    match address {
        IpAddr::V4(_) => !lies_in(&SPECIAL_IPV4),
        IpAddr::V6(_) => GLOBAL_IPV6.contains(address) && !lies_in(&SPECIAL_IPV6),
    }
}

fn behind_nat64(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V6(inner) if NAT64.contains(address) => {
            let [.., a, b, c, d] = inner.octets();
            Some(Ipv4Addr::new(a, b, c, d))
        }
        IpAddr::V6(_) | IpAddr::V4(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn blocks(allowed: &str) -> Vec<Cidr> {
        allowed
            .split_terminator(',')
            .map(|block| Cidr::parse(block).unwrap())
            .collect()
    }

    fn may(address: &str, allowed: &str) -> bool {
        may_be_dialled(address.parse().unwrap(), true, &blocks(allowed))
    }

    #[test]
    fn the_open_internet_is_open() {
        for address in
            "1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 172.15.255.255 \
            172.32.0.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255 2001:200::1 \
            2001:4860:4860::8888 2606:4700:4700::1111 2a00:1450::1"
                .split(' ')
        {
            assert!(may(address, ""), "{address}");
        }
    }

    #[test]
    fn everything_else_is_closed() {
        for address in "0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.1 127.255.255.254 \
            169.254.169.254 172.16.0.0 172.31.255.255 192.0.0.8 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.0 \
            198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 \
            ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:1.1.1.1 ::ffff:0:1.1.1.1 64:ff9b::1.1.1.1 64:ff9b::10.0.0.1 \
            64:ff9b:1::1 100::1 2001::1 2001:2::1 2001:20::1 2001:db8::1 2002:7f00:1:: 3fff::1 4000::1 5f00::1 \
            fc00::1 fd12:3456::1 fe80::1 fec0::1 ff02::1"
            .split(' ')
        {
            assert!(!may(address, ""), "{address}");
        }
    }

    #[test]
    fn what_the_operator_names_is_open_and_nothing_beside_it() {
        for (address, allowed, expected) in [
            ("10.1.2.3", "10.1.0.0/16", true),
            ("10.2.0.1", "10.1.0.0/16", false),
            ("::ffff:10.1.2.3", "10.1.0.0/16", true),
            ("::1", "127.0.0.0/8,::1", true),
            ("::1", "127.0.0.0/8", false),
            ("fd00::1", "fd00::/8", true),
            // NAT64 opens what is public behind it.
            ("64:ff9b::1.1.1.1", "64:ff9b::/96", true),
            ("64:ff9b::169.254.169.254", "64:ff9b::/96", false),
            ("64:ff9b::127.0.0.1", "64:ff9b::/96", false),
            ("64:ff9b::10.0.0.1", "64:ff9b::/96,10.0.0.0/8", true),
            ("64:ff9b::10.0.0.1", "10.0.0.0/8", false),
        ] {
            assert_eq!(may(address, allowed), expected, "{address} {allowed}");
        }
    }

    #[test]
    fn without_tls_only_this_machine_is_reached() {
        let everything = blocks("0.0.0.0/0,::/0");
        let plain = |address: &str, allowed: &[Cidr]| {
            may_be_dialled(address.parse().unwrap(), false, allowed)
        };
        assert!(
            plain("127.0.0.1", &everything)
                && plain("::1", &everything)
                && plain("::ffff:127.0.0.1", &everything)
        );
        assert!(
            !plain("10.0.0.1", &everything)
                && !plain("1.1.1.1", &everything)
                && !plain("::", &everything)
        );
        assert!(!plain("127.0.0.1", &[]));
    }

    proptest! {
        #[test]
        fn no_block_that_is_named_closes_anything(bits: u32, block: u32, prefix in 0_u8..=32) {
            let address = IpAddr::from(Ipv4Addr::from_bits(bits));
            let network = Ipv4Addr::from_bits(block & u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0));
            let named = [Cidr::parse(&format!("{network}/{prefix}")).unwrap()];
            prop_assert!(!may_be_dialled(address, true, &[]) || may_be_dialled(address, true, &named));
            prop_assert!(!named[0].contains(address) || may_be_dialled(address, true, &named));
        }

        #[test]
        fn the_standard_library_finds_nothing_we_overlooked(bits: u32) {
            let address = Ipv4Addr::from_bits(bits);
            let special = address.is_private() || address.is_loopback() || address.is_link_local()
                || address.is_multicast() || address.is_broadcast() || address.is_documentation()
                || address.is_unspecified();
            prop_assert!(!(special && may_be_dialled(IpAddr::V4(address), true, &[])));
        }
    }
}
