//! Protocol mappers, which say there what tokens carry: they become claims and audiences of scopes,
//! and fixed claims of a client.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::{Import, ImportedObject, Row, table};

/// The claim with the last part of each group's path.
pub(super) const GROUP_NAMES: &str = "group_names";

/// These say what every token of ours says, or nothing that an application reads.
const WITHOUT_LOSS: &str = "oidc-sub-mapper oidc-audience-resolve-mapper oidc-allowed-origins-mapper oidc-acr-mapper oidc-amr-mapper";

/// What the mappers of a scope or a client become.
#[derive(Default)]
pub(super) struct Mapped {
    /// From the user's claim to the name in UserInfo and the ID token.
    pub(super) identity: ImportedObject,
    /// The same for access tokens.
    pub(super) access: ImportedObject,
    pub(super) audiences: BTreeSet<String>,
    /// Of access tokens, the same for everybody.
    pub(super) fixed: ImportedObject,
}

/// Reads the mappers of a scope or a client.
pub(super) fn read(row: &Row<'_>, of: &str, to: &mut Import) -> Result<Mapped, String> {
    let mut mapped = Mapped::default();
    for mapper in row.rows("protocolMappers")? {
        add(&mapper, of, &mut mapped, to)?;
    }
    Ok(mapped)
}

/// An audience of access tokens. Where a client is named, the other name does not count there.
fn add_audience(
    config: &Row<'_>,
    of: &str,
    mapped: &mut Mapped,
    to: &mut Import,
) -> Result<(), String> {
    let client = config.text("included.client.audience")?;
    let Some(audience) = client.clone().or(config.text("included.custom.audience")?) else {
        return Ok(());
    };
    if !config.flag("access.token.claim", false)? {
        to.note(of, format!("its audience {audience} is left out: it was none of access tokens, and in ID tokens the client alone is one here"));
    } else if client.is_some() {
        // Clients and resources share one name space.
        to.note(
            of,
            format!("its audience {audience} is a client: call the API otherwise"),
        );
    } else {
        mapped.audiences.insert(audience);
    }
    Ok(())
}

fn add(mapper: &Row<'_>, of: &str, mapped: &mut Mapped, to: &mut Import) -> Result<(), String> {
    let Some(config) = mapper.nested("config")? else {
        return Ok(());
    };
    let kind = mapper.text("protocolMapper")?.unwrap_or_default();
    if super::is_among(WITHOUT_LOSS, &kind) {
        return Ok(());
    }
    let name = mapper.text("name")?.unwrap_or_default();
    // What is not said is not in the token there, but for UserInfo.
    let is_for_id_tokens = config.flag("id.token.claim", false)?;
    let is_for_people =
        is_for_id_tokens || config.flag("userinfo.token.claim", is_for_id_tokens)?;
    let is_for_access = config.flag("access.token.claim", false)?;
    if kind == "oidc-audience-mapper" {
        return add_audience(&config, of, mapped, to);
    }
    let claim = config.text("claim.name")?;
    let claim = claim.filter(|claim| !claim.contains('.'));
    let is_fixed = kind == HARDCODED && of.starts_with("client ") && is_for_access;
    if let Some(claim) = claim.as_ref().filter(|_| is_fixed) {
        let value = config.text("claim.value")?.unwrap_or_default();
        mapped.fixed.set(claim, typed(&config, value)?);
        if is_for_people {
            let note = format!("{claim} is in access tokens alone here (mapper {name})");
            to.note(of, note);
        }
        return Ok(());
    }
    let source = source(&kind, &config)?;
    let (Some(source), Some(claim)) = (source, claim.or_else(|| fixed_name(&kind))) else {
        let what = config.text("claim.name")?;
        let what = what.map_or(String::new(), |claim| format!(", which gave {claim}"));
        let line = format!("mapper {name} is left out: {kind}{what}");
        to.note(of, line);
        return Ok(());
    };
    if source == GROUP_NAMES {
        to.names_groups = true;
    }
    if is_for_people {
        mapped.identity.set(&source, claim.as_str());
    }
    if is_for_access {
        mapped.access.set(&source, claim);
    }
    Ok(())
}

const HARDCODED: &str = "oidc-hardcoded-claim-mapper";

/// The claim of ours that has what the mapper gives.
fn source(kind: &str, config: &Row<'_>) -> Result<Option<String>, String> {
    Ok(match kind {
        "oidc-usermodel-attribute-mapper" => config.text("user.attribute")?,
        "oidc-usermodel-property-mapper" => {
            let property = config.text("user.attribute")?;
            let ours = |[ours, theirs, _]: [&str; 3]| {
                (property.as_deref() == Some(theirs)).then(|| ours.to_owned())
            };
            table("claims of Keycloak").find_map(ours)
        }
        "oidc-full-name-mapper" => Some(String::from("name")),
        "oidc-group-membership-mapper" if config.flag("full.path", true)? => {
            Some(super::GROUPS.to_owned())
        }
        "oidc-group-membership-mapper" => Some(GROUP_NAMES.to_owned()),
        _ => None,
    })
}

fn fixed_name(kind: &str) -> Option<String> {
    (kind == "oidc-full-name-mapper").then(|| String::from("name"))
}

/// The value of a fixed claim in the type that it has there.
fn typed(config: &Row<'_>, value: String) -> Result<Value, String> {
    let kind = config.text("jsonType.label")?.unwrap_or_default();
    let is_text = kind.is_empty() || kind == "String";
    let parsed = serde_json::from_str(&value).ok().filter(|_| !is_text);
    Ok(parsed.unwrap_or(json!(value)))
}
