//! Pictures that can be shown to people whoever made them: raster formats, told by their first bytes and never by what a
//! server says they are. A drawing (SVG) may hold scripts and is none of them.

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const JPEG: &[u8] = b"\xff\xd8\xff";
const GIF: [&[u8]; 2] = [b"GIF87a", b"GIF89a"];

/// The media type of a picture; `None` for anything else.
pub fn media_type(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(PNG) {
        return Some("image/png");
    }
    if bytes.starts_with(JPEG) {
        return Some("image/jpeg");
    }
    if GIF.iter().any(|magic| bytes.starts_with(magic)) {
        return Some("image/gif");
    }
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    is_webp.then_some("image/webp")
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
