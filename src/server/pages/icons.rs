//! Small pictures beside words, which say the same: lines on a ground of 24 by 24.

use maud::{Markup, html};

pub const PASSKEY: &str = "M8 16a4 4 0 1 1 3.9-5H21v3h-2v3h-3v-3h-4.1A4 4 0 0 1 8 16zM7.5 12h.01";
pub const APP: &str = "M7 3h10v18H7zM11 18h2";
pub const RECOVERY_CODES: &str = "M5 3h14v18H5zM9 8h6M9 12h6M9 16h3";
pub const DEVICE: &str = "M5 5h14v10H5zM2 19h20";
pub const WARNING: &str = "M12 4 2.5 20h19zM12 10v4M12 17h.01";
pub const PERSON: &str = "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 20c1-4 4-5 8-5s7 1 8 5";
pub const APPLICATION: &str = "M3 5h18v14H3zM3 9h18";

pub fn icon(lines: &str) -> Markup {
    html! { svg .icon viewBox="0 0 24 24" aria-hidden="true" { path d=(lines) {} } }
}
