//! The operator's brand, from settings to what pages and files need.

use crate::config::Config;
use crate::pages::brand::Brand;

/// The name under `/static/` of the operator's logo.
pub const LOGO: &str = "brand-logo";

/// What of the brand is not in the settings as pages need it.
pub struct BrandTexts {
    /// `#rrggbb`
    color: Option<String>,
    /// The address we serve the logo at.
    logo: Option<String>,
}

impl BrandTexts {
    /// As configured.
    pub fn of(config: &Config) -> BrandTexts {
        let logo = config.brand.logo.as_ref();
        BrandTexts {
            color: config.brand.color.map(|color| color.to_string()),
            logo: logo.map(|_| format!("{}/static/{}", config.base_url.path(), LOGO)),
        }
    }

    /// How this installation presents itself.
    pub fn view<'a>(&'a self, config: &'a Config) -> Brand<'a> {
        Brand {
            name: &config.brand.name,
            logo: self.logo.as_deref(),
            color: self.color.as_deref(),
            privacy_url: config.brand.privacy_url.as_deref(),
            terms_url: config.brand.terms_url.as_deref(),
        }
    }
}
