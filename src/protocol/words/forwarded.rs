//! The address of the client behind the proxies. Reads `X-Forwarded-For` from right to left, past
//! the proxies that are trusted. Names are never resolved: reading ends at an entry that is not an
//! address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A block of addresses in CIDR notation (RFC 4632 §3.1, RFC 4291 §2.3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cidr {
    network: IpAddr,
    prefix: u8,
}

impl Cidr {
    pub const fn v4([a, b, c, d]: [u8; 4], prefix: u8) -> Cidr {
        Cidr {
            network: IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
            prefix,
        }
    }

    /// A block that is given by its first two groups; the other groups are zero.
    pub const fn v6([a, b]: [u16; 2], prefix: u8) -> Cidr {
        Cidr {
            network: IpAddr::V6(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0)),
            prefix,
        }
    }

    /// Reads `10.0.0.0/8`, `::1/128`, or a single address. The error names the rule that was
    /// broken, and does not repeat the text.
    pub fn parse(text: &str) -> Result<Cidr, &'static str> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let network: IpAddr = address
            .parse()
            .map_err(|_| "must be addresses or blocks such as 10.0.0.0/8")?;
        let width = width(network);
        let prefix = match prefix {
            Some(digits) => unsigned(digits),
            None => Some(width),
        };
        let prefix = prefix
            .filter(|prefix| *prefix <= width)
            .ok_or("must have a prefix length of at most 32, or 128 for IPv6, after each /")?;
        if bits(network) & !mask(prefix, width) != 0 {
            // One of the two was mistyped.
            return Err("must have no bits set beyond the prefix length");
        }
        Ok(Cidr { network, prefix })
    }

    /// An IPv4 address mapped into IPv6 counts as the IPv4 address it is.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let width = width(self.network);
        width == self::width(address)
            && (bits(address) ^ bits(self.network)) & mask(self.prefix, width) == 0
    }
}

/// Reads digits alone: `parse` would take a `+` before them.
fn unsigned(digits: &str) -> Option<u8> {
    if digits.as_bytes().iter().all(u8::is_ascii_digit) {
        digits.parse().ok()
    } else {
        None
    }
}

/// Whether what a peer forwards is believed. `None` is a Unix socket: its file permissions say who
/// may connect.
pub fn is_trusted(peer: Option<IpAddr>, trusted_proxies: &[Cidr]) -> bool {
    peer.is_none_or(|address| trusted_proxies.iter().any(|block| block.contains(address)))
}

/// The address a request came from: the right-most of `values` (`X-Forwarded-For`) that is no
/// trusted proxy; where all are trusted, the left-most; where an entry is no address, the last one
/// before it. A Unix socket counts as 127.0.0.1 if it forwarded nothing.
pub fn source<'a>(
    peer: Option<IpAddr>,
    values: impl DoubleEndedIterator<Item = &'a str>,
    trusted_proxies: &[Cidr],
) -> IpAddr {
    let mut nearest = peer.map_or(Ipv4Addr::LOCALHOST.into(), |peer| peer.to_canonical());
    if !is_trusted(peer, trusted_proxies) {
        return nearest;
    }
    for entry in values.rev().flat_map(|value| value.rsplit(',')) {
        let Some(address) = parse_entry(entry.trim_matches([' ', '\t'])) else {
            break;
        };
        nearest = address;
        if !is_trusted(Some(address), trusted_proxies) {
            break;
        }
    }
    nearest
}

/// What one machine may have all addresses of: an IPv4 address, or an IPv6 /64.
pub fn network(address: IpAddr) -> IpAddr {
    block(address, 64)
}

/// What one organization may have all addresses of: an IPv4 address, or an IPv6 /48.
pub fn site(address: IpAddr) -> IpAddr {
    block(address, 48)
}

/// The network of an address, as people are told of it: an IPv4 /24, or an IPv6 /48.
pub fn shown_network(address: IpAddr) -> String {
    match site(address) {
        IpAddr::V4(address) => {
            format!("{}/24", Ipv4Addr::from_bits(address.to_bits() & !255))
        }
        IpAddr::V6(address) => format!("{address}/48"),
    }
}

/// An IPv4 address as it is, or the first address of the IPv6 block of so many bits.
fn block(address: IpAddr, bits: u32) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let mask = u128::MAX << (128 - bits);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    }
}

/// Some proxies write the client's port, too.
fn parse_entry(entry: &str) -> Option<IpAddr> {
    let bare = entry
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(entry);
    let address = bare
        .parse()
        .or_else(|_| entry.parse().map(|socket: SocketAddr| socket.ip()));
    address.ok().map(|address: IpAddr| address.to_canonical())
}

fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn mask(prefix: u8, width: u8) -> u128 {
    let host_bits = u32::from(width.saturating_sub(prefix));
    u128::MAX.checked_shl(host_bits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn source_of(peer: &str, values: &[&str]) -> String {
        let peer = (peer != "unix").then(|| peer.parse().unwrap());
        let proxies = ["127.0.0.0/8", "::1/128"].map(|block| Cidr::parse(block).unwrap());
        source(peer, values.iter().copied(), &proxies).to_string()
    }

    #[test]
    fn one_machine_has_one_network_and_one_organization_one_site() {
        for (address, shown) in [
            ("192.0.2.7", "192.0.2.0/24"),
            ("::ffff:192.0.2.7", "192.0.2.0/24"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1::/48"),
        ] {
            assert_eq!(shown_network(address.parse().unwrap()), shown);
        }
        for (address, network_expected, site_expected) in [
            ("192.0.2.7", "192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::", "2001:db8:1::"),
            ("2001:db8:1:2::1", "2001:db8:1:2::", "2001:db8:1::"),
            ("2001:db8:1:3::1", "2001:db8:1:3::", "2001:db8:1::"),
            ("2001:db8:2:3::1", "2001:db8:2:3::", "2001:db8:2::"),
        ] {
            let parsed = address.parse().unwrap();
            assert_eq!(network(parsed).to_string(), network_expected, "{address}");
            assert_eq!(site(parsed).to_string(), site_expected, "{address}");
        }
    }

    #[test]
    fn blocks_contain_what_they_should() {
        #[rustfmt::skip]
        let table = [
            ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true), ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "2001:db8::1", false), ("::/0", "2001:db8::1", true), ("::/0", "10.0.0.1", false),
            ("2001:db8::/33", "2001:db8:7fff::1", true), ("2001:db8::/33", "2001:db8:8000::1", false),
            ("192.0.2.7", "192.0.2.7", true), ("192.0.2.7", "192.0.2.6", false),
        ];
        for (block, address, inside) in table {
            assert_eq!(
                Cidr::parse(block)
                    .unwrap()
                    .contains(address.parse().unwrap()),
                inside,
                "{block} {address}"
            );
        }
    }

    #[test]
    fn mistyped_blocks_are_refused() {
        for (texts, rule) in [
            (
                &["", "localhost", "10.0.0/8"][..],
                "must be addresses or blocks such as",
            ),
            (
                &[
                    "10.0.0.0/",
                    "10.0.0.0/33",
                    "10.0.0.0/+8",
                    "10.0.0.0/8/8",
                    "::1/129",
                ],
                "must have a prefix length",
            ),
            (&["10.0.0.1/8"], "must have no bits set beyond"),
        ] {
            assert!(
                texts
                    .iter()
                    .all(|text| Cidr::parse(text).unwrap_err().starts_with(rule)),
                "{rule}"
            );
        }
    }

    #[test]
    fn the_source_is_the_right_most_untrusted_address() {
        for (peer, values, source) in [
            // Strangers are not believed.
            ("203.0.113.9", &["192.0.2.1"][..], "203.0.113.9"),
            ("::ffff:203.0.113.9", &["192.0.2.1"], "203.0.113.9"),
            ("127.0.0.1", &["192.0.2.66, 198.51.100.7"], "198.51.100.7"),
            (
                "::ffff:127.0.0.1",
                &["198.51.100.7, 127.0.0.1"],
                "198.51.100.7",
            ),
            (
                "unix",
                &["192.0.2.66", "198.51.100.7,\t::1"],
                "198.51.100.7",
            ),
            ("unix", &["::ffff:1.2.3.4"], "1.2.3.4"),
            ("127.0.0.1", &["127.0.0.5, 127.0.0.6"], "127.0.0.5"),
            // Ports are cut off.
            ("127.0.0.1", &["198.51.100.7:4711"], "198.51.100.7"),
            ("127.0.0.1", &["[2001:db8::1]:4711"], "2001:db8::1"),
            ("127.0.0.1", &["[2001:db8::1]"], "2001:db8::1"),
            ("127.0.0.1", &["192.0.2.1, unknown, 127.0.0.9"], "127.0.0.9"),
            ("127.0.0.1", &[], "127.0.0.1"),
        ] {
            assert_eq!(source_of(peer, values), source, "{peer} {values:?}");
        }
        let long = "a".repeat(10_240);
        for bad in [
            "a",
            "unknown",
            "",
            ",",
            "1.2.3",
            "1.2.3.4.5",
            "_hidden",
            "example.com",
            long.as_str(),
        ] {
            assert_eq!(source_of("127.0.0.1", &[bad]), "127.0.0.1", "{bad}");
            assert_eq!(source_of("unix", &["192.0.2.1", bad]), "127.0.0.1", "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_header_makes_a_stranger_someone_else(value in "\\PC{0,200}") {
            prop_assert_eq!(source_of("203.0.113.9", &[&value]), "203.0.113.9");
        }

        #[test]
        fn a_block_of_one_contains_only_itself(left: u32, right: u32) {
            let block = Cidr::parse(&Ipv4Addr::from_bits(left).to_string()).unwrap();
            prop_assert_eq!(block.contains(IpAddr::from(Ipv4Addr::from_bits(right))), left == right);
        }
    }
}
