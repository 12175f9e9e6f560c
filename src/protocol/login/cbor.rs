//! As much of CBOR (RFC 8949) as authenticators send: definite lengths, no tags, four levels.

#[derive(Clone, Debug, PartialEq, Eq)]
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
        members
            .iter()
            .find(|(key, _)| key == wanted)
            .map(|(_, value)| value)
    }
}

/// The first item, and the bytes after it. `None` where the bytes are not well-formed, a map has a
/// key twice, or there is more than this file reads.
pub fn read(bytes: &[u8]) -> Option<(Item<'_>, &[u8])> {
    item(bytes, 4)
}

fn item(bytes: &[u8], levels: u8) -> Option<(Item<'_>, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let (argument, rest) = match first & 31 {
        small @ 0..24 => (u64::from(small), rest),
        24 => rest
            .split_first()
            .map(|(byte, rest)| (u64::from(*byte), rest))?,
        25 => rest
            .split_first_chunk()
            .map(|(bytes, rest)| (u64::from(u16::from_be_bytes(*bytes)), rest))?,
        26 => rest
            .split_first_chunk()
            .map(|(bytes, rest)| (u64::from(u32::from_be_bytes(*bytes)), rest))?,
        27 => rest
            .split_first_chunk()
            .map(|(bytes, rest)| (u64::from_be_bytes(*bytes), rest))?,
        _ => return None,
    };
    let length = usize::try_from(argument).ok()?;
    match first >> 5 {
        0 => Some((Item::Integer(i64::try_from(argument).ok()?), rest)),
        1 => Some((Item::Integer(-1 - i64::try_from(argument).ok()?), rest)),
        2 => rest
            .split_at_checked(length)
            .map(|(bytes, rest)| (Item::Bytes(bytes), rest)),
        3 => {
            let (text, rest) = rest.split_at_checked(length)?;
            Some((Item::Text(str::from_utf8(text).ok()?), rest))
        }
        4 => {
            let mut items = Vec::new();
            let mut rest = rest;
            let levels = levels.checked_sub(1)?;
            for _ in 0..length {
                let (one, left) = item(rest, levels)?;
                items.push(one);
                rest = left;
            }
            Some((Item::List(items), rest))
        }
        5 => {
            let (mut members, mut rest, levels): (Vec<(Item<'_>, Item<'_>)>, _, _) =
                (Vec::new(), rest, levels.checked_sub(1)?);
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
        _ => None,
    }
}
