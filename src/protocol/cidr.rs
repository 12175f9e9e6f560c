//! Address blocks in CIDR notation (RFC 4632 §3.1, RFC 4291 §2.3).

use std::fmt;
use std::net::IpAddr;

/// A block of addresses: the network and how many of its leading bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    network: IpAddr,
    prefix: u8,
}

impl Cidr {
    /// Reads `10.0.0.0/8`, `::1/128` or a bare address. Bits beyond the prefix must be zero: a block written with them is
    /// usually a slip. The error is the rule that was broken.
    pub fn parse(text: &str) -> Result<Cidr, &'static str> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let network: IpAddr = address.parse().map_err(|_| "must be an address or a block such as 10.0.0.0/8")?;
        let longest = width(network);
        let prefix = match prefix {
            Some(digits) => {
                parse_prefix(digits).filter(|prefix| *prefix <= longest).ok_or("has no such prefix length")?
            }
            None => longest,
        };
        let cidr = Cidr { network, prefix };
        if bits(network) & !cidr.mask() != 0 {
            return Err("has bits set beyond its prefix length");
        }
        Ok(cidr)
    }

    /// Whether the block holds `address`. An IPv4 address written as IPv6 (`::ffff:10.0.0.1`) counts as the IPv4 it is.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        width(address) == width(self.network) && bits(address) & self.mask() == bits(self.network)
    }

    fn mask(&self) -> u128 {
        let width = u32::from(width(self.network));
        let all = if width == 32 { u128::from(u32::MAX) } else { u128::MAX };
        all.checked_shl(width - u32::from(self.prefix)).unwrap_or(0) & all
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.network, self.prefix)
    }
}

fn parse_prefix(digits: &str) -> Option<u8> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_holds_its_own_addresses_only() {
        for (block, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("0.0.0.0/0", "203.0.113.9", "::1"),
            ("::1/128", "::1", "::2"),
            ("fc00::/7", "fdff::1", "fe00::1"),
            ("::/0", "2001:db8::1", "10.0.0.1"),
            ("127.0.0.0/8", "::ffff:127.0.0.1", "::ffff:128.0.0.1"),
        ] {
            let cidr = Cidr::parse(block).unwrap();
            assert!(cidr.contains(inside.parse().unwrap()), "{block} {inside}");
            assert!(!cidr.contains(outside.parse().unwrap()), "{block} {outside}");
        }
    }

    #[test]
    fn slips_are_refused() {
        for text in
            ["", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/+8", "10.0.0.1/8", "::1/129", "example.com", "10.0.0.0/8/8"]
        {
            assert!(Cidr::parse(text).is_err(), "{text:?}");
        }
    }
}
