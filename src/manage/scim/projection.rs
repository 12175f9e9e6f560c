//! Which attributes an answer has: `attributes` and `excludedAttributes` (RFC 7644 §3.9).

use super::attribute::UserAttribute;
use super::attribute_path::below_core;

pub struct Projection {
    /// Paths; `None` for all.
    only: Option<Vec<String>>,
    without: Vec<String>,
}

impl Projection {
    /// Reads both parameters: paths with commas between them.
    pub fn new(attributes: Option<&str>, excluded: Option<&str>) -> Projection {
        Projection {
            only: attributes.map(paths),
            without: excluded.map(paths).unwrap_or_default(),
        }
    }

    pub fn shows(&self, attribute: UserAttribute) -> bool {
        let mut names = vec![attribute.as_str()];
        names.extend(attribute.members().first());
        self.has_one_of(&names)
    }

    /// `meta` has a place of its own: it is no attribute of a user.
    pub fn shows_meta(&self) -> bool {
        self.has_one_of(&["meta"])
    }

    fn has_one_of(&self, names: &[&str]) -> bool {
        let is_in = |paths: &[String]| {
            let is_named = |path: &String| names.iter().any(|name| path.eq_ignore_ascii_case(name));
            paths.iter().any(is_named)
        };
        let is_wanted = self.only.as_deref().is_none_or(is_in);
        is_wanted && !is_in(&self.without)
    }
}

fn paths(text: &str) -> Vec<String> {
    let paths = text.split(',').map(str::trim);
    paths.map(|path| below_core(path).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scim::attribute::USER_SCHEMA;

    #[test]
    fn what_is_asked_for_and_not_left_out_is_shown() {
        let enterprise = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";
        let nick_name = format!("{USER_SCHEMA}:NICKNAME");
        for (only, without, shown) in [
            (None, None, [true; 4]),
            (Some("userName"), None, [true, false, false, false]),
            (Some("name"), None, [false, true, false, false]),
            (Some("name.givenName"), None, [false, true, false, false]),
            (Some("name.familyName"), None, [false; 4]),
            (Some(enterprise), None, [false, false, true, false]),
            (Some("meta, username"), None, [true, false, false, true]),
            (Some(&*nick_name), None, [false; 4]),
            (None, Some("name,meta"), [true, false, true, false]),
            (Some("userName"), Some("userName"), [false; 4]),
        ] {
            let projection = Projection::new(only, without);
            let of = |attribute| projection.shows(attribute);
            let told = [
                of(UserAttribute::UserName),
                of(UserAttribute::GivenName),
                of(UserAttribute::Department),
                projection.shows_meta(),
            ];
            assert_eq!(told, shown, "{only:?} without {without:?}");
        }
        let by_urn = Projection::new(Some(&nick_name), None);
        assert!(by_urn.shows(UserAttribute::NickName));
    }
}
