//! The operator's colour as a stylesheet: the content security policy allows no inline style.

use crate::config::Color;

/// The least contrast of text with what it stands on (WCAG 2.2 §1.4.3, level AA).
const LEAST_CONTRAST: f64 = 4.5;
/// The darkest and the lightest ground that a link stands on in the light and the dark palette of
/// `static/app.css`.
const LIGHT_GROUND: Color = Color([0xf3, 0xf5, 0xf8]);
const DARK_GROUND: Color = Color([0x1c, 0x22, 0x2b]);
const WHITE: Color = Color([0xff; 3]);
const BLACK: Color = Color([0; 3]);
/// How far a button moves towards its text's opposite when pointed at, in 256ths.
const HOVER_SHIFT: u16 = 26;

/// The stylesheet served at `/static/brand.css`.
pub fn brand_css(accent: Color) -> String {
    let (on_accent, away) = accent.legible();
    let hover = accent.towards(away, HOVER_SHIFT);
    let buttons = format!("--accent:{accent};--on-accent:{on_accent};--accent-hover:{hover};");
    let light = accent.until_legible_on(LIGHT_GROUND, BLACK);
    let dark = accent.until_legible_on(DARK_GROUND, WHITE);
    format!(
        ":root{{{buttons}--link:{light}}}\n\
         @media (prefers-color-scheme:dark){{:root{{{buttons}--link:{dark}}}}}\n"
    )
}

impl Color {
    /// Relative luminance (WCAG 2.2), 0 to 1.
    fn luminance(self) -> f64 {
        let [red, green, blue] = self.0.map(|channel| {
            let value = f64::from(channel) / 255.0;
            if value <= 0.040_45 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    /// Contrast ratio (WCAG 2.2), 1 to 21.
    fn contrast(self, other: Color) -> f64 {
        let one = self.luminance();
        let two = other.luminance();
        (one.max(two) + 0.05) / (one.min(two) + 0.05)
    }

    /// The better text colour on this one, and the colour to move away to without losing contrast.
    /// One of black and white always has a contrast above 4.5.
    fn legible(self) -> (Color, Color) {
        if self.contrast(WHITE) >= self.contrast(BLACK) {
            (WHITE, BLACK)
        } else {
            (BLACK, WHITE)
        }
    }

    /// This colour, `part` 256ths of the way to `end`.
    fn towards(self, end: Color, part: u16) -> Color {
        let mut channels = self.0;
        for (channel, end) in channels.iter_mut().zip(end.0) {
            let mixed = (u32::from(*channel) * u32::from(256 - part)
                + u32::from(end) * u32::from(part))
                / 256;
            *channel = u8::try_from(mixed).unwrap_or(end);
        }
        Color(channels)
    }

    /// The nearest colour on the way to `end` that can be read on `ground`.
    fn until_legible_on(self, ground: Color, end: Color) -> Color {
        (0..=256)
            .step_by(4)
            .map(|part| self.towards(end, part))
            .find(|color| color.contrast(ground) >= LEAST_CONTRAST)
            .unwrap_or(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLESHEET: &str = include_str!("../../../static/app.css");

    fn parse(text: &str) -> Option<Color> {
        let [_, red, green, blue] = u32::from_str_radix(text.strip_prefix('#')?, 16)
            .ok()?
            .to_be_bytes();
        Some(Color([red, green, blue]))
    }

    /// The colour variables of a stylesheet's `:root` blocks: the light one, and the dark one.
    fn palettes(stylesheet: &str) -> [Vec<(String, Color)>; 2] {
        let blocks: Vec<Vec<(String, Color)>> = stylesheet
            .split(":root")
            .skip(1)
            .map(|rest| rest.split_once('{').unwrap().1.split_once('}').unwrap().0)
            .map(|block| block.split(';').filter_map(variable).collect())
            .filter(|block: &Vec<(String, Color)>| !block.is_empty())
            .collect();
        blocks.try_into().expect("one light and one dark palette")
    }

    fn variable(declaration: &str) -> Option<(String, Color)> {
        let (name, value) = declaration.split_once(':')?;
        Some((
            name.trim().strip_prefix("--")?.to_owned(),
            parse(value.trim())?,
        ))
    }

    fn contrast(palette: &[(String, Color)], one: &str, two: &str) -> f64 {
        let color = |wanted: &str| {
            palette
                .iter()
                .find(|(name, _)| name == wanted)
                .unwrap_or_else(|| panic!("{wanted}"))
                .1
        };
        color(one).contrast(color(two))
    }

    #[test]
    fn contrast_is_that_of_wcag() {
        assert!((WHITE.contrast(BLACK) - 21.0).abs() < 1e-9);
        assert!((WHITE.contrast(Color([0x76; 3])) - 4.54).abs() < 0.01);
        assert!((BLACK.contrast(BLACK) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_palettes_of_the_stylesheet_are_legible() {
        for palette in palettes(STYLESHEET) {
            for pair in "text/page text/card muted/page muted/card link/page link/card link/soft text/soft muted/soft \
                on-accent/accent on-accent/accent-hover danger/danger-soft text/danger-soft warning/warning-soft \
                text/warning-soft muted/warning-soft"
                .split(' ')
            {
                let (text, ground) = pair.split_once('/').unwrap();
                let ratio = contrast(&palette, text, ground);
                assert!(ratio >= LEAST_CONTRAST, "{text} on {ground}: {ratio:.2}");
            }
            // Borders of controls and the ring around what has the focus: WCAG 2.2 §1.4.11.
            for (edge, ground) in [
                ("control", "card"),
                ("link", "card"),
                ("link", "page"),
                ("danger", "card"),
            ] {
                assert!(
                    contrast(&palette, edge, ground) >= 3.0,
                    "{edge} on {ground}"
                );
            }
        }
    }

    #[test]
    fn any_brand_colour_is_legible_in_both_palettes() {
        let steps = [0x00, 0x33, 0x5a, 0x77, 0x99, 0xc0, 0xff];
        let colors = steps
            .map(|red| steps.map(|green| steps.map(|blue| Color([red, green, blue]))))
            .into_iter();
        for color in colors.flatten().flatten() {
            let css = brand_css(color);
            for (brand, fixed) in palettes(&css).iter().zip(palettes(STYLESHEET)) {
                assert!(
                    contrast(brand, "accent", "on-accent") >= LEAST_CONTRAST,
                    "{css}"
                );
                assert!(
                    contrast(brand, "accent-hover", "on-accent") >= LEAST_CONTRAST,
                    "{css}"
                );
                let both = [
                    brand.clone(),
                    fixed
                        .into_iter()
                        .filter(|(name, _)| name != "link")
                        .collect(),
                ]
                .concat();
                for ground in ["page", "card", "soft"] {
                    assert!(
                        contrast(&both, "link", ground) >= LEAST_CONTRAST,
                        "link on {ground}: {css}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_legible_brand_colour_stays_as_it_is() {
        let css = brand_css(Color([0x1f, 0x5f, 0x8b]));
        assert!(
            css.starts_with(":root{--accent:#1f5f8b;--on-accent:#ffffff;")
                && css.contains("--link:#1f5f8b}")
        );
    }
}
