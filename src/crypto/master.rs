//! The master secret: a file of base64 lines outside the database, from which every other key is derived. The first
//! line is current; the others are still accepted, so that the secret can be changed without signing anybody out.

use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use aws_lc_rs::hkdf;
use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, general_purpose};

use super::{CryptoError, random};
use crate::protocol::secret::{SecretBytes, SecretText};

/// The credential's name under `$CREDENTIALS_DIRECTORY`.
const CREDENTIAL: &str = "gatepost-secret";
/// Fewer bytes than this in a line are refused.
const LEAST_BYTES: usize = 32;
/// A line names itself by one byte; with more lines two names would soon be the same.
const MOST_LINES: usize = 8;
const MOST_FILE_BYTES: u64 = 65_536;

/// Padding or none, as tools differ.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Every line of the file, the current one first.
#[derive(Clone, Debug)]
pub struct MasterSecret {
    pub(super) lines: Vec<MasterLine>,
}

/// One line.
#[derive(Clone, Debug)]
pub(super) struct MasterLine {
    /// Stands in whatever is sealed under this line; stays the line's own when others are put before it.
    pub(super) name: u8,
    pub(super) bytes: SecretBytes,
}

/// Where the secret's file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MasterSecretFile {
    /// `GATEPOST_SECRET_FILE`: ours (or root's) alone, not a link.
    Path(PathBuf),
    /// `$CREDENTIALS_DIRECTORY`, where systemd keeps others out by access lists.
    CredentialsDirectory(PathBuf),
}

impl MasterSecret {
    /// Reads the file. Errors name the file and what is wrong with it, never its content.
    pub fn load(file: &MasterSecretFile) -> Result<MasterSecret, CryptoError> {
        let path = match file {
            MasterSecretFile::Path(path) => path.clone(),
            MasterSecretFile::CredentialsDirectory(directory) => directory.join(CREDENTIAL),
        };
        let refused = |cause: String| CryptoError::new(format!("master secret {}: {cause}", path.display()));
        let text = match file {
            MasterSecretFile::Path(_) => read_private(&path),
            MasterSecretFile::CredentialsDirectory(_) => open(&path).and_then(|(file, _)| read(file)),
        };
        MasterSecret::parse(text.map_err(refused)?.expose()).map_err(|error| refused(error.0))
    }

    /// Reads base64 lines; empty ones are skipped.
    pub fn parse(text: &str) -> Result<MasterSecret, CryptoError> {
        let lines: Vec<MasterLine> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).map(parse_line).collect::<Result<_, _>>()?;
        if lines.is_empty() || lines.len() > MOST_LINES {
            return Err(CryptoError::new(format!(
                "it must hold 1 to {MOST_LINES} lines; `gatepost secret` prints one"
            )));
        }
        let mut names: Vec<u8> = lines.iter().map(|line| line.name).collect();
        names.sort_unstable();
        names.dedup();
        if names.len() < lines.len() {
            return Err(CryptoError::new("two of its lines are the same or look alike from outside; make another"));
        }
        Ok(MasterSecret { lines })
    }

    /// A new line for such a file: 32 random bytes.
    pub fn generate() -> SecretText {
        SecretText::new(general_purpose::STANDARD.encode(random::bytes::<32>()))
    }
}

fn parse_line(line: &str) -> Result<MasterLine, CryptoError> {
    let bytes = BASE64.decode(line).map_err(|_| CryptoError::new("a line is not base64"))?;
    if bytes.len() < LEAST_BYTES {
        return Err(CryptoError::new(format!("a line holds fewer than {LEAST_BYTES} bytes")));
    }
    Ok(MasterLine { name: name(&bytes)?, bytes: SecretBytes::new(bytes) })
}

/// One byte derived from the line: says nothing about the rest of it.
fn name(bytes: &[u8]) -> Result<u8, CryptoError> {
    let mut name = [0; 32];
    let expanded = hkdf::Salt::new(hkdf::HKDF_SHA256, b"gatepost/line-name").extract(bytes);
    let filled = expanded.expand(&[b"name"], hkdf::HKDF_SHA256).and_then(|key| key.fill(&mut name));
    filled.map_err(|_| CryptoError::new("key derivation failed"))?;
    let [first, ..] = name;
    Ok(first)
}

fn read_private(path: &Path) -> Result<SecretText, String> {
    let is_link = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    if is_link {
        return Err(String::from("it is a symbolic link; name the file itself"));
    }
    let (file, metadata) = open(path)?;
    if metadata.mode() & 0o077 != 0 {
        return Err(String::from("others may read or write it; chmod 600"));
    }
    let own = fs::metadata("/proc/self").map(|own| own.uid()).map_err(|_| String::from("cannot tell who we are"))?;
    if metadata.uid() != own && metadata.uid() != 0 {
        return Err(String::from("it belongs to another user"));
    }
    read(file)
}

fn open(path: &Path) -> Result<(File, Metadata), String> {
    // Non-blocking, lest a named pipe hold up the start.
    const O_NONBLOCK: i32 = 0o4000;
    let mut options = File::options();
    let file = options
        .read(true)
        .custom_flags(O_NONBLOCK)
        .open(path)
        .map_err(|error| format!("cannot open it: {}", error.kind()))?;
    let metadata = file.metadata().map_err(|error| format!("cannot inspect it: {}", error.kind()))?;
    if !metadata.is_file() || metadata.len() > MOST_FILE_BYTES {
        return Err(String::from("it is not a small regular file"));
    }
    Ok((file, metadata))
}

fn read(file: File) -> Result<SecretText, String> {
    let mut text = String::new();
    let read = file.take(MOST_FILE_BYTES).read_to_string(&mut text);
    read.map_err(|_| String::from("it is not text"))?;
    Ok(SecretText::new(text))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const LINE: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    fn file(name: &str, content: &str, mode: u32) -> PathBuf {
        let path = std::env::temp_dir().join(format!("gatepost-master-{}-{name}", random::identifier()));
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn load(path: &Path) -> Result<MasterSecret, CryptoError> {
        let loaded = MasterSecret::load(&MasterSecretFile::Path(path.to_owned()));
        fs::remove_file(path).unwrap();
        loaded
    }

    #[test]
    fn a_private_file_is_read_with_or_without_padding() {
        assert_eq!(load(&file("good", &format!("\n{LINE}\n"), 0o600)).unwrap().lines.len(), 1);
        assert_eq!(load(&file("bare", LINE.trim_end_matches('='), 0o400)).unwrap().lines.len(), 1);
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        for mode in [0o644, 0o640, 0o604, 0o660, 0o620] {
            assert!(load(&file("open", LINE, mode)).unwrap_err().0.contains("chmod 600"), "{mode:o}");
        }
    }

    #[test]
    fn links_and_directories_are_refused() {
        let target = file("target", LINE, 0o600);
        let link = target.with_extension("link");
        symlink(&target, &link).unwrap();
        assert!(load(&link).unwrap_err().0.contains("symbolic link"));
        fs::remove_file(target).unwrap();
        assert!(MasterSecret::load(&MasterSecretFile::Path(std::env::temp_dir())).is_err());
    }

    #[test]
    fn weak_or_unreadable_content_is_refused_without_repeating_it() {
        for content in ["", "\n\n", "canary!", "Y2FuYXJ5", &format!("{LINE}\n{LINE}"), &"canary".repeat(20_000)] {
            let error = load(&file("bad", content, 0o600)).unwrap_err();
            assert!(!error.0.contains("canary") && !error.0.contains("Y2FuYXJ5"), "{error}");
        }
    }

    #[test]
    fn a_generated_line_is_accepted() {
        assert!(MasterSecret::parse(MasterSecret::generate().expose()).is_ok());
    }

    #[test]
    fn a_missing_file_is_named() {
        let error =
            MasterSecret::load(&MasterSecretFile::CredentialsDirectory(PathBuf::from("/nonexistent"))).unwrap_err();
        assert!(error.0.contains("/nonexistent/gatepost-secret"), "{error}");
    }
}
