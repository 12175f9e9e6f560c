//! CBOR of authenticators. What is read and written again is read as the same, and what is left over
//! is the end of the input.
#![no_main]

use gatepost::protocol::login::cbor::{Item, read};
use libfuzzer_sys::fuzz_target;

fn head(kind: u8, argument: u64, to: &mut Vec<u8>) {
    to.push(kind << 5 | 27);
    to.extend(argument.to_be_bytes());
}

fn write(item: &Item<'_>, to: &mut Vec<u8>) {
    match item {
        Item::Integer(number) if *number >= 0 => head(0, number.unsigned_abs(), to),
        Item::Integer(number) => head(1, number.unsigned_abs() - 1, to),
        Item::Bytes(bytes) => {
            head(2, bytes.len() as u64, to);
            to.extend(*bytes);
        }
        Item::Text(text) => {
            head(3, text.len() as u64, to);
            to.extend(text.as_bytes());
        }
        Item::List(items) => {
            head(4, items.len() as u64, to);
            items.iter().for_each(|item| write(item, to));
        }
        Item::Map(members) => {
            head(5, members.len() as u64, to);
            for (key, value) in members {
                write(key, to);
                write(value, to);
            }
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((item, rest)) = read(data) else {
        return;
    };
    assert!(data.ends_with(rest));
    let mut written = Vec::new();
    write(&item, &mut written);
    assert_eq!(read(&written), Some((item, &[][..])));
});
