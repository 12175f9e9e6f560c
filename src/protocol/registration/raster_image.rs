//! Pictures that can be shown to people whoever made them: raster formats, told by their first bytes and never by what a
//! server says they are. A drawing (SVG) may hold scripts and is none of them.

const MAGIC: [(&[u8], &str); 4] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
];

/// The media type of a picture; `None` for anything else.
pub fn media_type(bytes: &[u8]) -> Option<&'static str> {
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    let told = MAGIC.into_iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, media_type)| media_type);
    told.or(is_webp.then_some("image/webp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_else_is_one() {
        for bytes in [
            &b""[..],
            b"\x89PN",
            b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
            b"<?xml version='1.0'?><svg/>",
            b"<!doctype html><script>alert(1)</script>",
            b"GIF90a",
            b"RIFF\0\0\0\0WAVE",
            b"RIFF",
            b" \x89PNG\r\n\x1a\n",
            b"BM",
        ] {
            assert_eq!(media_type(bytes), None, "{bytes:?}");
        }
    }
}
