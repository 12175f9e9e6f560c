//! Protocol mappers, which say there what tokens carry: they become claims and audiences of scopes,
//! and fixed claims of a client.

use std::collections::BTreeSet;

use super::super::{Import, ImportedObject, Row, table};
use super::attributes::typed;
use crate::protocol::registration::names::own_claim;
use crate::protocol::token::claims::built_in_scopes;

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
    } else if client.is_some() || to.clients.contains(&audience) {
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
    let claim = config.text("claim.name")?.or_else(|| fixed_name(&kind));
    // A dot makes an object there.
    let claim = claim.filter(|claim| !claim.contains('.') && own_claim(claim).is_ok());
    let is_fixed = kind == HARDCODED && of.starts_with("client ") && is_for_access;
    if let Some(claim) = claim.as_ref().filter(|_| is_fixed) {
        let value = config.text("claim.value")?.unwrap_or_default();
        let json_type = config.text("jsonType.label")?.unwrap_or_default();
        mapped.fixed.set(claim, typed(&json_type, &value));
        if is_for_people {
            let note = format!("{claim} is in access tokens alone here (mapper {name})");
            to.note(of, note);
        }
        return Ok(());
    }
    let source = source(&kind, &config, to)?;
    let source = source.filter(|source| own_claim(source).is_ok());
    let (Some(source), Some(claim)) = (source, claim) else {
        return note_left_out(mapper, &config, of, to);
    };
    settle(mapper, &config, of, to)?;
    if source == GROUP_NAMES {
        to.names_groups = true;
    }
    let mut is_given = true;
    if is_for_people {
        is_given &= give(&mut mapped.identity, &source, &claim);
    }
    if is_for_access {
        is_given &= give(&mut mapped.access, &source, &claim);
    }
    if !is_given {
        let note = format!(
            "mapper {name} is left out: another gives {claim}, or the same by another name. Register a scope of its own for it"
        );
        to.note(of, note);
    }
    Ok(())
}

/// A scope gives a claim under one name, and a name to one claim.
fn give(claims: &mut ImportedObject, source: &str, claim: &str) -> bool {
    let is_free = claims.0.values().all(|other| *other != claim);
    if is_free && !claims.0.contains_key(source) {
        claims.set(source, claim);
    }
    claims.is(source, claim)
}

fn note_left_out(
    mapper: &Row<'_>,
    config: &Row<'_>,
    of: &str,
    to: &mut Import,
) -> Result<(), String> {
    let name = mapper.text("name")?.unwrap_or_default();
    let kind = mapper.text("protocolMapper")?.unwrap_or_default();
    let claim = config.text("claim.name")?;
    let what = claim.map_or(String::new(), |claim| format!(", which gave {claim}"));
    to.note(of, format!("mapper {name} is left out: {kind}{what}"));
    Ok(())
}

/// Keeps what the mapper says of its attributes for when the users are read.
fn settle(mapper: &Row<'_>, config: &Row<'_>, of: &str, to: &mut Import) -> Result<(), String> {
    let kind = mapper.text("protocolMapper")?.unwrap_or_default();
    let is_settled = match attribute(&kind, config)? {
        Some(attribute) => to.attributes.settle_form(&attribute, config)?,
        None => kind != ADDRESS || to.attributes.settle_address(config)?,
    };
    if !is_settled {
        let name = mapper.text("name")?.unwrap_or_default();
        let note = format!(
            "mapper {name}: its claim has the form here that another mapper of its attributes gave: another JSON type, or an array"
        );
        to.note(of, note);
    }
    Ok(())
}

/// Reads a scope that is built in here, or that says nothing here. What its mappers gave beside
/// that has a line.
pub(super) fn read_built_in(row: &Row<'_>, name: &str, to: &mut Import) -> Result<(), String> {
    let of = format!("scope {name}");
    let given = ITS_CLAIMS.iter().find(|(scope, _)| *scope == name);
    let given = given.map_or("", |(_, claims)| claims);
    let here = built_in_scopes().into_iter().find(|ours| ours.name == name);
    let here = here.map(|ours| ours.claims).unwrap_or_default();
    for mapper in row.rows("protocolMappers")? {
        let Some(config) = mapper.nested("config")? else {
            continue;
        };
        let kind = mapper.text("protocolMapper")?.unwrap_or_default();
        let claim = config.text("claim.name")?.or_else(|| fixed_name(&kind));
        let claim = claim.unwrap_or_default();
        if super::is_among(WITHOUT_LOSS, &kind) || super::is_among(given, &claim) {
            continue;
        }
        let mut is_here = source(&kind, &config, to)?.as_deref() == Some(&claim);
        if let Some(attribute) = attribute(&kind, &config)?
            && here.contains(&claim)
            && !is_vouched(&claim)
        {
            is_here = to.attributes.rename(&attribute, &claim);
        }
        if is_here && here.contains(&claim) {
            settle(&mapper, &config, &of, to)?;
        } else {
            note_left_out(&mapper, &config, &of, to)?;
        }
    }
    Ok(())
}

/// Whether the claim has a better source than an attribute, which some realms let people write
/// themselves.
pub(super) fn is_vouched(claim: &str) -> bool {
    let mut of_account = table("claims of Keycloak");
    of_account.any(|[ours, ..]| ours == claim)
        || ["name", super::ROLE, super::GROUPS, GROUP_NAMES].contains(&claim)
}

/// The attribute that the mapper gives, if it is no member of the account.
fn attribute(kind: &str, config: &Row<'_>) -> Result<Option<String>, String> {
    let attribute = config.text("user.attribute")?;
    let is_own = |name: &String| of_account(name).is_none() && !is_vouched(name);
    Ok(attribute.filter(|name| kind == ATTRIBUTE && is_own(name)))
}

fn of_account(member: &str) -> Option<String> {
    let ours = |[ours, theirs, _]: [&str; 3]| (member == theirs).then(|| ours.to_owned());
    table("claims of Keycloak").find_map(ours)
}

const ADDRESS: &str = "oidc-address-mapper";
const ATTRIBUTE: &str = "oidc-usermodel-attribute-mapper";
const HARDCODED: &str = "oidc-hardcoded-claim-mapper";

/// What Keycloak's own mappers give in scopes that have other claims here, or none.
const ITS_CLAIMS: [(&str, &str); 5] = [
    ("basic", "auth_time"),
    ("microprofile-jwt", "upn groups"),
    ("organization", "organization"),
    (
        "roles",
        "realm_access.roles resource_access.${client_id}.roles",
    ),
    (
        "service_account",
        "client_id clientId clientHost clientAddress",
    ),
];

/// The claim of ours that has what the mapper gives.
fn source(kind: &str, config: &Row<'_>, to: &Import) -> Result<Option<String>, String> {
    if let Some(attribute) = attribute(kind, config)? {
        return Ok(Some(to.attributes.claim(&attribute)));
    }
    Ok(match kind {
        ATTRIBUTE | "oidc-usermodel-property-mapper" => {
            let member = config.text("user.attribute")?.unwrap_or_default();
            of_account(&member)
        }
        "oidc-full-name-mapper" | ADDRESS => fixed_name(kind),
        "oidc-group-membership-mapper" if config.flag("full.path", true)? => {
            Some(super::GROUPS.to_owned())
        }
        "oidc-group-membership-mapper" => Some(GROUP_NAMES.to_owned()),
        _ => None,
    })
}

fn fixed_name(kind: &str) -> Option<String> {
    let name = match kind {
        "oidc-full-name-mapper" => "name",
        ADDRESS => "address",
        _ => return None,
    };
    Some(name.to_owned())
}
