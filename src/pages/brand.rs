//! How an installation presents itself, and its colour as a stylesheet: the content security policy allows no inline style.

/// Name, logo, colour and links of an installation.
#[derive(Clone, Copy, Debug)]
pub struct Brand<'a> {
    /// Shown in every title, and in place of a logo.
    pub name: &'a str,
    /// Path of the logo, served by us.
    pub logo: Option<&'a str>,
    /// `#rrggbb`; anything else counts as none.
    pub color: Option<&'a str>,
    /// Shown in the footer.
    pub privacy_url: Option<&'a str>,
    /// Shown in the footer.
    pub terms_url: Option<&'a str>,
}

/// The stylesheet served at `/static/brand.css`; `None` without a usable colour: then pages do not ask for it.
pub fn brand_css(brand: &Brand<'_>) -> Option<String> {
    brand.color.map(str::to_owned)
}
