//! Rust files as the rules see them: without comments and literals.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use super::tokens::tokens;

const UNIT_TESTS: &str = "\n#[cfg(test)]\nmod tests {";

/// The crates that lie in `src`.
pub const CRATES: &str = "import manage protocol registrar registration server store tool";

/// One file under `src/`.
#[derive(Debug)]
pub struct SourceFile {
    /// Relative to `src/`, with slashes.
    pub path: String,
    /// Its text, in which comments and the insides of literals are blank; lines stay where they
    /// are.
    code: String,
    /// Lines of code, without blank ones, comments and unit tests.
    pub code_lines: usize,
    /// Its text before the unit tests; empty where all of it is test.
    product: String,
}

/// Every Rust file under `src/`, read once for all tests.
pub fn sources() -> &'static [SourceFile] {
    static SOURCES: LazyLock<Vec<SourceFile>> = LazyLock::new(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut files = Vec::new();
        collect(&root, &root, &mut files);
        assert!(files.len() > 10, "the sources were not found");
        // A module that its parent declares for tests alone, and all below it, is test from end to
        // end.
        let of_tests: Vec<String> = files.iter().flat_map(SourceFile::test_modules).collect();
        let is_test = |path: &str| of_tests.iter().any(|module| path.starts_with(&**module));
        for file in files.iter_mut().filter(|file| is_test(&file.path)) {
            file.code_lines = 0;
            file.product.clear();
        }
        files
    });
    &SOURCES
}

fn collect(root: &Path, directory: &Path, files: &mut Vec<SourceFile>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let relative = path.strip_prefix(root).unwrap().to_str().unwrap();
            files.push(SourceFile::new(
                relative,
                &fs::read_to_string(&path).unwrap(),
            ));
        }
    }
}

impl SourceFile {
    pub fn new(path: &str, text: &str) -> SourceFile {
        let product = text.find(UNIT_TESTS).map_or(text, |end| &text[..=end]);
        let code = blank(product, false);
        let code_lines = code.lines().filter(|line| !line.trim().is_empty()).count();
        SourceFile {
            path: path.to_owned(),
            code: blank(text, true),
            code_lines,
            product: product.to_owned(),
        }
    }

    /// What a reader reads of it.
    pub fn tokens(&self) -> Vec<&str> {
        tokens(&self.product)
    }

    /// Lines that a window of 100 columns cuts off, without unit tests.
    pub fn long_lines(&self) -> usize {
        let lines = self.product.lines();
        lines.filter(|line| line.chars().count() > 100).count()
    }

    /// Where the modules begin that this file declares under `#[cfg(test)]`: `pages/tests.rs`,
    /// `pages/tests/`.
    fn test_modules(&self) -> Vec<String> {
        let path = &self.path;
        let of_folder = path.strip_suffix("mod.rs").or(path.strip_suffix("lib.rs"));
        let directory = of_folder.map(str::to_owned);
        let directory =
            directory.unwrap_or_else(|| format!("{}/", path.strip_suffix(".rs").unwrap()));
        // The name of the feature, `testing`, is a literal, and so blank.
        let for_other_crates = format!("#[cfg(any(test, feature = {:9}))]", "");
        let code = self.code.replace(&for_other_crates, "#[cfg(test)]");
        let declared = code.split("#[cfg(test)]").skip(1);
        let heads = declared.filter_map(|rest| rest.split_once(';').map(|(head, _)| head.trim()));
        let modules = heads.filter(|head| !head.contains('{'));
        let names = modules.filter_map(|head| head.rsplit_once("mod "));
        let files =
            names.flat_map(|(_, name)| [".rs", "/"].map(|end| format!("{directory}{name}{end}")));
        files.collect()
    }

    /// Where the crate that the file belongs to stands in `src`: `store::` for what lies in
    /// `src/store`, nothing for the root package's own.
    fn module_of_crate(&self) -> String {
        let first = self.path.split('/').next().unwrap();
        match CRATES.split(' ').any(|one| one == first) {
            true => format!("{first}::"),
            false => String::new(),
        }
    }

    /// Every path of its own crate that it uses outside its unit tests, from `src` on. `module` is
    /// its own: `protocol::words`.
    pub fn paths_used(&self, module: &str) -> Vec<String> {
        let code = blank(&self.product, true);
        let mut paths = Vec::new();
        for (position, start) in code.match_indices("use ") {
            let path = code[position + start.len()..].split(';').next().unwrap();
            let roots = ["crate::", "self::", "super::"];
            let is_statement = roots.iter().any(|root| path.starts_with(root));
            if is_statement && !is_word_byte(code[..position].bytes().next_back()) {
                let members = spread(&path.replace(" as ", "="));
                paths.extend(members.iter().map(|path| self.resolved(path, module)));
            }
        }
        for (position, root) in code.match_indices("crate::") {
            let of_crate = self.module_of_crate();
            let named = paths_at(&code[position + root.len()..]);
            paths.extend(named.iter().map(|path| format!("{of_crate}{path}")));
        }
        paths
    }

    /// A path that begins with `crate`, `self` or `super` in `module`, from the crate root on.
    fn resolved(&self, path: &str, module: &str) -> String {
        if let Some(path) = path.strip_prefix("crate::") {
            return format!("{}{path}", self.module_of_crate());
        }
        let mut module = module;
        let mut path = path.strip_prefix("self::").unwrap_or(path);
        while let Some(above) = path.strip_prefix("super::") {
            module = module.rsplit_once("::").map_or("", |(above, _)| above);
            path = above;
        }
        format!("{module}::{path}")
    }

    /// Whether the name, a word or a path, stands in the code.
    pub fn names(&self, name: &str) -> bool {
        names(&self.code, name)
    }

    /// The same before the unit tests of the file.
    pub fn product_names(&self, name: &str) -> bool {
        let end = self.code.find(UNIT_TESTS).unwrap_or(self.code.len());
        let product = &self.code[..end];
        !self.product.is_empty() && names(product, name)
    }

    pub fn count(&self, text: &str) -> usize {
        self.code.matches(text).count()
    }
}

fn names(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(position, _)| {
        let before = code[..position].bytes().next_back();
        let after = code[position + name.len()..].bytes().next();
        !is_word_byte(before) && !is_word_byte(after) && before != Some(b'.')
    })
}

fn is_word_byte(byte: Option<u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The path or the group of paths that `text` begins with.
fn paths_at(text: &str) -> Vec<String> {
    let Some(group) = text.strip_prefix('{') else {
        let end =
            text.find(|character: char| !(character.is_alphanumeric() || "_:".contains(character)));
        let path = &text[..end.unwrap_or(text.len())];
        return vec![path.trim_end_matches(':').to_owned()];
    };
    let mut depth = 1;
    let mut members = vec![String::new()];
    for character in group.chars() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => members.push(String::new()),
            character if !character.is_whitespace() => members.last_mut().unwrap().push(character),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    members.retain(|member| !member.is_empty());
    members
}

/// `a::b` and `a::c::d` of `a::{b, c::{d=e}}`.
fn spread(path: &str) -> Vec<String> {
    let Some((before, group)) = path.split_once('{') else {
        let name = path.split('=').next().unwrap();
        return vec![name.trim().to_owned()];
    };
    let members = paths_at(&format!("{{{group}"));
    let whole = members
        .iter()
        .map(|member| format!("{}{member}", before.trim()));
    whole.flat_map(|path| spread(&path)).collect()
}

/// Replaces comments, and what stands in string and character literals if asked to, by blanks.
fn blank(text: &str, literals: bool) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let length = literal_or_comment(rest);
        if length == 0 {
            code.push(character);
            rest = &rest[character.len_utf8()..];
        } else {
            let is_comment = rest.starts_with("//") || rest.starts_with("/*");
            let kept = |character| character == '\n' || !(literals || is_comment);
            let shown = |character| if kept(character) { character } else { ' ' };
            code.extend(rest[..length].chars().map(shown));
            rest = &rest[length..];
        }
        // An identifier that ends in r or b does not begin a literal.
        if character.is_alphanumeric() && length == 0 {
            let ends_word = |next: char| !(next.is_alphanumeric() || next == '_');
            let end = rest.find(ends_word).unwrap_or(rest.len());
            code.push_str(&rest[..end]);
            rest = &rest[end..];
        }
    }
    code
}

/// How many bytes of `text` are a comment or a literal that it begins with.
pub fn literal_or_comment(text: &str) -> usize {
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return text.find("*/").map_or(text.len(), |end| end + 2);
    }
    for prefix in ["br", "cr", "r"] {
        if let Some(hashes) = text.strip_prefix(prefix) {
            let count = hashes.bytes().take_while(|byte| *byte == b'#').count();
            if hashes[count..].starts_with('"') {
                let end = format!("\"{}", "#".repeat(count));
                let body = prefix.len() + count + 1;
                let found = text[body..].find(&end);
                return found.map_or(text.len(), |found| body + found + end.len());
            }
        }
    }
    for prefix in ["", "b", "c"] {
        if let Some(quoted) = text.strip_prefix(prefix) {
            if quoted.starts_with('"') {
                return prefix.len() + quoted_length(quoted, '"');
            }
            if quoted.starts_with('\'') && is_character(quoted) {
                return prefix.len() + quoted_length(quoted, '\'');
            }
        }
    }
    0
}

/// Tells a character from a lifetime.
fn is_character(text: &str) -> bool {
    let mut characters = text.chars().skip(1);
    let (first, second) = (characters.next(), characters.next());
    first == Some('\\') || second == Some('\'')
}

fn quoted_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (position, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            character if character == quote => return position + character.len_utf8(),
            _ => {}
        }
    }
    text.len()
}
