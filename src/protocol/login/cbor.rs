//! As much of CBOR (RFC 8949) as authenticators send: definite lengths, no tags, four levels.

#[derive(Clone, Debug, PartialEq)]
pub enum Item<'a> {
    Integer(i64),
    Bytes(&'a [u8]),
    Text(&'a str),
    List(Vec<Item<'a>>),
    Map(Vec<(Item<'a>, Item<'a>)>),
}

impl<'a> Item<'a> {
    pub fn get(&self, wanted: &Item<'_>) -> Option<&Item<'a>> {
        let Item::Map(members) = self else {
            return None;
        };
        let (_, value) = members.iter().find(|(key, _)| key == wanted)?;
        Some(value)
    }
}

/// The first item, and the bytes after it. `None` where the bytes are not well-formed, a map has a
/// key twice, or there is more than this file reads.
pub fn read(bytes: &[u8]) -> Option<(Item<'_>, &[u8])> {
    item(bytes, 4)
}

fn item(bytes: &[u8], levels: u8) -> Option<(Item<'_>, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let (argument, rest) = argument(first & 31, rest)?;
    let length = usize::try_from(argument).ok()?;
    match first >> 5 {
        0 => Some((Item::Integer(argument), rest)),
        1 => Some((Item::Integer(-1 - argument), rest)),
        2 => rest
            .split_at_checked(length)
            .map(|(bytes, rest)| (Item::Bytes(bytes), rest)),
        3 => {
            let (text, rest) = rest.split_at_checked(length)?;
            Some((Item::Text(str::from_utf8(text).ok()?), rest))
        }
        4 => list(rest, length, levels),
        5 => map(rest, length, levels),
        _ => None,
    }
}

/// The argument of an item (RFC 8949 §3), and the bytes after it. `None` where it is beyond an
/// `i64`.
fn argument(information: u8, bytes: &[u8]) -> Option<(i64, &[u8])> {
    match information {
        small @ 0..24 => Some((i64::from(small), bytes)),
        24 => {
            let (byte, rest) = bytes.split_first()?;
            Some((i64::from(*byte), rest))
        }
        25 => {
            let (argument, rest) = bytes.split_first_chunk()?;
            Some((i64::from(u16::from_be_bytes(*argument)), rest))
        }
        26 => {
            let (argument, rest) = bytes.split_first_chunk()?;
            Some((i64::from(u32::from_be_bytes(*argument)), rest))
        }
        27 => {
            let (argument, rest) = bytes.split_first_chunk()?;
            let argument = u64::from_be_bytes(*argument);
            Some((i64::try_from(argument).ok()?, rest))
        }
        _ => None,
    }
}

fn list(mut rest: &[u8], length: usize, levels: u8) -> Option<(Item<'_>, &[u8])> {
    let levels = levels.checked_sub(1)?;
    let mut items = Vec::new();
    for _ in 0..length {
        let (one, left) = item(rest, levels)?;
        items.push(one);
        rest = left;
    }
    Some((Item::List(items), rest))
}

fn map(mut rest: &[u8], length: usize, levels: u8) -> Option<(Item<'_>, &[u8])> {
    let levels = levels.checked_sub(1)?;
    let mut members: Vec<(Item<'_>, Item<'_>)> = Vec::new();
    for _ in 0..length {
        let (key, left) = item(rest, levels)?;
        let (value, left) = item(left, levels)?;
        if members.iter().any(|(known, _)| *known == key) {
            return None;
        }
        members.push((key, value));
        rest = left;
    }
    Some((Item::Map(members), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    }

    /// The item that is the whole.
    fn read_whole(hex: &str, check: impl FnOnce(Option<&Item<'_>>)) {
        let bytes = bytes(hex);
        let read = read(&bytes).filter(|(_, rest)| rest.is_empty());
        check(read.as_ref().map(|(item, _)| item));
    }

    #[test]
    fn integers_are_those_of_rfc_8949_appendix_a() {
        for (hex, number) in [
            ("00", 0),
            ("01", 1),
            ("17", 23),
            ("18 18", 24),
            ("18 64", 100),
            ("19 03e8", 1_000),
            ("1a 000f4240", 1_000_000),
            ("1b 000000e8d4a51000", 1_000_000_000_000),
            ("1b 7fffffffffffffff", i64::MAX),
            ("20", -1),
            ("29", -10),
            ("38 63", -100),
            ("39 03e7", -1_000),
            ("3b 7fffffffffffffff", i64::MIN),
        ] {
            read_whole(hex, |item| {
                assert_eq!(item, Some(&Item::Integer(number)), "{hex}");
            });
        }
    }

    #[test]
    fn texts_lists_and_maps_are_those_of_rfc_8949_appendix_a() {
        let number = Item::Integer;
        let pair = |key: &'static str, value| (Item::Text(key), value);
        for (hex, expected) in [
            ("40", Item::Bytes(&[])),
            ("44 01020304", Item::Bytes(&[1, 2, 3, 4])),
            ("60", Item::Text("")),
            ("64 49455446", Item::Text("IETF")),
            ("62 c3bc", Item::Text("\u{fc}")),
            ("80", Item::List(vec![])),
            (
                "83 010203",
                Item::List(vec![number(1), number(2), number(3)]),
            ),
            (
                "82 01 82 0203",
                Item::List(vec![number(1), Item::List(vec![number(2), number(3)])]),
            ),
            ("a0", Item::Map(vec![])),
            (
                "a2 0102 0304",
                Item::Map(vec![(number(1), number(2)), (number(3), number(4))]),
            ),
            (
                "a2 6161 01 6162 82 0203",
                Item::Map(vec![
                    pair("a", number(1)),
                    pair("b", Item::List(vec![number(2), number(3)])),
                ]),
            ),
        ] {
            read_whole(hex, |item| assert_eq!(item, Some(&expected), "{hex}"));
        }
    }

    #[test]
    fn what_is_cut_off_not_well_formed_or_not_read_here_is_nothing() {
        for hex in [
            "",
            "18",
            "19 00",
            "1a 000000",
            "1b 00000000000000",
            "44 010203",
            "61",
            "82 01",
            "a1 01",
            "a1", // cut off
            "1b 8000000000000000",
            "3b 8000000000000000",
            "1b ffffffffffffffff", // too large
            "5b ffffffffffffffff",
            "9b ffffffffffffffff",
            "bb ffffffffffffffff",
            "1c",
            "1d",
            "1e",
            "1f",
            "5f 4101 ff",
            "9f ff",
            "bf ff", // reserved, indefinite
            "61 ff", // not UTF-8
            "c0 60",
            "f4",
            "f6",
            "f9 3c00",
            "ff", // tags, simple values, floats
            "a2 0102 0103",
            "a2 6161 01 6161 01", // a key twice
            "81 81 81 81 80",
            "a1 00 a1 00 a1 00 a1 00 a0", // five levels
        ] {
            assert_eq!(read(&bytes(hex)), None, "{hex}");
        }
        for hex in ["81 81 81 80", "a1 00 a1 00 a1 00 a0"] {
            read_whole(hex, |item| assert!(item.is_some(), "{hex}"));
        }
    }

    #[test]
    fn what_follows_the_item_is_left() {
        let sent = bytes("82 01 02 ff");
        let (item, rest) = read(&sent).unwrap();
        let expected = Item::List(vec![Item::Integer(1), Item::Integer(2)]);
        assert_eq!((item, rest), (expected, &[0xff][..]));
    }

    #[test]
    fn a_member_is_found_by_its_key_in_a_map_alone() {
        let sent = bytes("a2 6161 01 01 02");
        let (item, _) = read(&sent).unwrap();
        assert_eq!(item.get(&Item::Text("a")), Some(&Item::Integer(1)));
        assert_eq!(item.get(&Item::Integer(1)), Some(&Item::Integer(2)));
        assert_eq!(item.get(&Item::Text("b")), None);
        let list = Item::List(vec![Item::Text("a")]);
        assert_eq!(list.get(&Item::Text("a")), None);
    }
}
