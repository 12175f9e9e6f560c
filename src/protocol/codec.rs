//! The byte form of what we seal: codes, reference tokens. Deterministic to write; read strictly, so one value has one
//! form and nothing can hide behind the end. Numbers are big-endian, lengths LEB128 in their shortest form.

use super::identifiers::GrantId;
use super::instant::{Day, Instant};

/// Collects fields in order.
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Nothing written yet.
    pub fn new() -> Writer {
        Writer(Vec::new())
    }

    /// One byte.
    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    /// A flag, as 0 or 1.
    pub fn boolean(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    /// Four bytes.
    pub fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    /// Eight bytes.
    pub fn i64(&mut self, value: i64) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    /// Microseconds since the epoch, eight bytes.
    pub fn instant(&mut self, value: Instant) {
        self.i64(value.micros());
    }

    /// Four bytes of the day, 16 random ones.
    pub fn grant_id(&mut self, grant: GrantId) {
        self.fixed(&grant.day.0.to_be_bytes());
        self.fixed(&grant.random);
    }

    /// Bytes whose number the reader knows.
    pub fn fixed(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Bytes with their number before them.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.fixed(bytes);
    }

    /// Text as UTF-8, with its number of bytes before it.
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// A flag, and the value where there is one.
    pub fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Writer, T)) {
        self.boolean(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
    }

    /// The number of texts, and each of them.
    pub fn texts<'a>(&mut self, texts: impl IntoIterator<Item = &'a str>) {
        let texts: Vec<&str> = texts.into_iter().collect();
        self.length(texts.len());
        for text in texts {
            self.text(text);
        }
    }

    /// What was written.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    fn length(&mut self, mut length: usize) {
        while length >= 0x80 {
            self.u8((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        self.u8(length as u8);
    }
}

/// Takes fields off the front, in the order they were written. Every reading is `None` when the bytes are not a value.
#[derive(Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads from the first byte on.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    /// One byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.fixed::<1>().map(|[byte]| byte)
    }

    /// A flag; anything but 0 and 1 is none.
    pub fn boolean(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.fixed().map(u32::from_be_bytes)
    }

    /// Eight bytes.
    pub fn i64(&mut self) -> Option<i64> {
        self.fixed().map(i64::from_be_bytes)
    }

    /// Microseconds since the epoch.
    pub fn instant(&mut self) -> Option<Instant> {
        self.i64().map(Instant::from_micros)
    }

    /// A grant's name.
    pub fn grant_id(&mut self) -> Option<GrantId> {
        Some(GrantId { day: Day(i32::from_be_bytes(self.fixed()?)), random: self.fixed()? })
    }

    /// As many bytes as the caller expects.
    pub fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    /// Bytes with their number before them.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// UTF-8 text.
    pub fn text(&mut self) -> Option<String> {
        std::str::from_utf8(self.bytes()?).ok().map(str::to_owned)
    }

    /// A value that may be missing: the outer `None` is a reading error.
    pub fn optional<T>(&mut self, read: impl FnOnce(&mut Reader<'a>) -> Option<T>) -> Option<Option<T>> {
        if self.boolean()? { read(self).map(Some) } else { Some(None) }
    }

    /// Texts with their number before them.
    pub fn texts(&mut self) -> Option<Vec<String>> {
        // Each text takes a byte or more, so a number beyond what is left is a lie; nothing is allocated for it.
        let count = self.length().filter(|count| *count <= self.0.len())?;
        (0..count).map(|_| self.text()).collect()
    }

    /// The end: `None` when something is left.
    pub fn finish(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }

    fn length(&mut self) -> Option<usize> {
        let mut length: usize = 0;
        // Four groups of seven bits: 256 MiB, far above anything that is ever sealed.
        for shift in [0, 7, 14, 21] {
            let byte = self.u8()?;
            length |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return (byte != 0 || shift == 0).then_some(length);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_form_is_fixed() {
        let mut writer = Writer::new();
        writer.u8(7);
        writer.u32(1);
        writer.i64(-1);
        writer.text("ab");
        writer.optional(Some(3), Writer::u8);
        writer.optional(None, Writer::u8);
        writer.texts(["x", ""]);
        let expected = [&[7, 0, 0, 0, 1][..], &[255; 8], &[2, b'a', b'b', 1, 3, 0, 2, 1, b'x', 0]].concat();
        assert_eq!(writer.finish(), expected);
    }

    #[test]
    fn what_is_not_whole_is_refused() {
        assert_eq!(Reader::new(&[]).u8(), None);
        assert_eq!(Reader::new(&[0, 0, 0]).u32(), None);
        assert_eq!(Reader::new(&[0; 7]).i64(), None);
        assert_eq!(Reader::new(&[2]).boolean(), None);
        assert_eq!(Reader::new(&[3, b'a', b'b']).bytes(), None);
        assert_eq!(Reader::new(&[1, 0xff]).text(), None);
        assert_eq!(Reader::new(&[1]).optional(Reader::u8), None);
        assert_eq!(Reader::new(&[5, 0, 0]).texts(), None);
        assert_eq!(Reader::new(&[0]).finish(), None);
    }

    #[test]
    fn a_length_has_one_form() {
        for bytes in [&[0x80, 0x00][..], &[0x81, 0x80, 0x00], &[0xff, 0xff, 0xff, 0xff, 0x01], &[0x80], &[]] {
            assert_eq!(Reader::new(bytes).length(), None, "{bytes:?}");
        }
        assert_eq!(Reader::new(&[0x80, 0x01]).length(), Some(128));
        assert_eq!(Reader::new(&[0x00]).length(), Some(0));
    }

    #[test]
    fn a_lying_count_allocates_nothing() {
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0x7f]).texts(), None);
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0x7f]).bytes(), None);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_back(number in any::<i64>(), text in ".{0,300}", texts in prop::collection::vec(".{0,8}", 0..200), flag in any::<Option<u32>>()) {
            let mut writer = Writer::new();
            writer.i64(number);
            writer.text(&text);
            writer.texts(texts.iter().map(String::as_str));
            writer.optional(flag, Writer::u32);
            let bytes = writer.finish();
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.i64(), Some(number));
            prop_assert_eq!(reader.text(), Some(text));
            prop_assert_eq!(reader.texts(), Some(texts));
            prop_assert_eq!(reader.optional(Reader::u32), Some(flag));
            prop_assert_eq!(reader.finish(), Some(()));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut reader = Reader::new(&bytes);
            let _ = (reader.texts(), reader.optional(Reader::text), reader.u32(), reader.bytes());
        }
    }
}
