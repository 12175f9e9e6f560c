//! Why a file that was named cannot be read.

use std::io::{self, ErrorKind};

use super::failure::Failure;

pub(super) fn unread(name: &str, error: &io::Error) -> Failure {
    let kind = error.kind();
    let known = [
        (ErrorKind::NotFound, "there is no such file"),
        (ErrorKind::IsADirectory, "it is a directory"),
        (ErrorKind::PermissionDenied, "whoever runs this command may not"),
    ];
    let known = known.iter().find(|(known, _)| *known == kind).map(|(_, reason)| (*reason).to_owned());
    let reason = known.unwrap_or_else(|| error.to_string());
    Failure::Refused(format!("{name} cannot be read: {reason}"))
}

/// The failure says where it stops being text.
pub(super) fn utf8(name: &str, bytes: Vec<u8>) -> Result<String, Failure> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(Failure::Refused(format!("{name} is UTF-16: save it as UTF-8")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let sound = error.as_bytes().iter().take(error.utf8_error().valid_up_to());
        let line = sound.filter(|byte| **byte == b'\n').count() + 1;
        Failure::Refused(format!("{name} is not UTF-8, from line {line} on: save it as UTF-8"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_told_with_its_line() {
        assert_eq!(utf8("x", b"{}".to_vec()).unwrap(), "{}");
        let told = |bytes: &[u8]| utf8("x", bytes.to_vec()).unwrap_err().to_string();
        assert_eq!(told(b"{\n\"caf\xe9\"}"), "x is not UTF-8, from line 2 on: save it as UTF-8");
        assert_eq!(told(b"\xff\xfe{\0"), "x is UTF-16: save it as UTF-8");
    }
}
