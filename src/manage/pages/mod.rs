//! Pages of administrators, by the server's own parts of pages.

pub mod admin;

#[cfg(test)]
pub mod tests;
