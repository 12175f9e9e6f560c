//! The blocks of commands in the documentation, and the list of those that are typed elsewhere, or
//! nowhere.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A fenced block of commands on a page.
#[derive(Debug)]
pub struct Block {
    /// The page and the number of the block on it, as `docs/operate/people.md 2`.
    pub name: String,
    pub text: String,
}

/// The pages below a directory, the directory's own first.
pub fn pages_below(directory: &Path) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages.extend(pages_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    pages
}

/// All blocks of README and documentation.
pub fn all() -> Vec<Block> {
    let mut pages = vec![PathBuf::from("README.md")];
    pages.extend(pages_below(Path::new("docs")));
    let mut blocks = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for (index, text) in of_page(&text).into_iter().enumerate() {
            let name = format!("{} {}", page.display(), index + 1);
            blocks.push(Block { name, text });
        }
    }
    blocks
}

/// The commands, without what a list indents them by.
fn of_page(page: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let begins = line.trim_start();
        if !matches!(begins, "```sh" | "```bash") {
            continue;
        }
        let indent = line.len() - begins.len();
        let inside = lines
            .by_ref()
            .take_while(|line| line.trim_start() != "```")
            .map(|line| line.get(indent..).unwrap_or_default().to_owned() + "\n");
        blocks.push(inside.collect());
    }
    blocks
}

/// The blocks that `tests/service/documentation_commands.rs` does not type, each with the test that
/// does, or `nobody` and why.
pub fn elsewhere() -> BTreeMap<String, String> {
    let list = include_str!("../fixtures/commands_elsewhere.txt");
    let entries = list
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    entries
        .map(|line| {
            let (name, reason) = line.split_once(" = ").unwrap();
            (name.to_owned(), reason.to_owned())
        })
        .collect()
}
