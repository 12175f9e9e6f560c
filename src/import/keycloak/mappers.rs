//! Protocol mappers, which say there what tokens carry: they become claims and audiences of scopes,
//! and fixed claims of a client.

use std::collections::BTreeSet;

use serde_json::json;

use super::super::{Import, ImportedObject, Row, table};
use super::attributes::typed;
use gatepost_protocol::registration::kind::ObjectKind;
use gatepost_protocol::registration::names::{own_claim, token_name};
use gatepost_protocol::token::claims::{built_in_scopes, is_personal};

/// The claim with the last part of each group's path.
pub(super) const GROUP_NAMES: &str = "group_names";

/// These say what every token of ours says, or nothing that an application reads.
const WITHOUT_LOSS: &str =
    "oidc-sub-mapper oidc-allowed-origins-mapper oidc-acr-mapper oidc-amr-mapper";

/// Mappers that no scope here can stand for, and what follows.
const WITHOUT_SCOPE: [(&str, &str); 2] = [
    (
        "oidc-audience-resolve-mapper",
        "aud of access tokens named the clients of whose roles somebody had some \
         (oidc-audience-resolve-mapper). Here it names resources alone: an API that looks for its \
         client there needs a resource, and a resource scope",
    ),
    (
        "oidc-sha256-pairwise-sub-mapper",
        "people have another sub there in its tokens (oidc-sha256-pairwise-sub-mapper). Here they \
         have their own: the client will not know them",
    ),
];

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

struct Mapper<'r> {
    name: String,
    kind: String,
    /// What it gives is called so in tokens; `""` where it has no name.
    claim: String,
    /// The attribute that it gives, if that is no member of the account.
    attribute: Option<String>,
    config: Row<'r>,
}

impl Mapper<'_> {
    /// Those of a scope or a client that say something.
    fn all_of<'r>(row: &Row<'r>) -> Result<Vec<Mapper<'r>>, String> {
        let mut all = Vec::new();
        for mapper in row.rows("protocolMappers")? {
            let kind = mapper.text("protocolMapper")?.unwrap_or_default();
            let config = mapper.nested("config")?;
            let Some(config) = config.filter(|_| !super::is_among(WITHOUT_LOSS, &kind)) else {
                continue;
            };
            let claim = config.text("claim.name")?;
            let attribute = config.text("user.attribute")?.filter(|_| kind == ATTRIBUTE);
            all.push(Mapper {
                name: mapper.text("name")?.unwrap_or_default(),
                claim: claim.unwrap_or_else(|| unsaid_claim(&kind).to_owned()),
                kind,
                attribute: attribute.filter(|name| of_account(name).is_none() && !is_vouched(name)),
                config,
            });
        }
        Ok(all)
    }

    /// Whether the built-in scope with these claims gives here what the mapper gave. An attribute
    /// may become that claim for it.
    fn is_built_in(&self, here: &[String], to: &mut Import) -> Result<bool, String> {
        let claim = &self.claim;
        let is_here = here.contains(claim);
        Ok(match &self.attribute {
            Some(attribute) => {
                is_here && !is_vouched(claim) && to.attributes.rename(attribute, claim)
            }
            None => is_here && self.source(to)?.as_ref() == Some(claim),
        })
    }

    /// The claim of ours that has what the mapper gives.
    fn source(&self, to: &Import) -> Result<Option<String>, String> {
        if let Some(attribute) = &self.attribute {
            // That claim has what another attribute says, which people may write themselves.
            let is_other = to.attributes.is_taken(attribute);
            return Ok((!is_other).then(|| to.attributes.claim(attribute)));
        }
        Ok(match self.kind.as_str() {
            ATTRIBUTE | "oidc-usermodel-property-mapper" => {
                let member = self.config.text("user.attribute")?.unwrap_or_default();
                of_account(&member)
            }
            FULL_NAME | ADDRESS => Some(self.claim.clone()),
            "oidc-group-membership-mapper" if self.config.flag("full.path", true)? => {
                Some(super::GROUPS.to_owned())
            }
            "oidc-group-membership-mapper" => Some(GROUP_NAMES.to_owned()),
            _ => None,
        })
    }

    /// Whether ID tokens or UserInfo have it. What is not said is not in the token there; UserInfo
    /// is as the ID token.
    fn is_for_people(&self) -> Result<bool, String> {
        let is_for_id_tokens = self.config.flag("id.token.claim", false)?;
        let is_for_userinfo = self.config.flag("userinfo.token.claim", is_for_id_tokens)?;
        Ok(is_for_id_tokens || is_for_userinfo)
    }

    /// Notes what it did, where that has a line of its own.
    fn is_told(&self, of: &str, to: &mut Import) -> bool {
        for (kind, text) in WITHOUT_SCOPE {
            if self.kind == kind {
                to.note(of, text);
                return true;
            }
        }
        false
    }

    fn note_left_out(&self, of: &str, to: &mut Import) {
        let Mapper {
            name, kind, claim, ..
        } = self;
        // Others are named by whoever wrote them.
        let kind = match kind.starts_with("oidc-") {
            true => kind.as_str(),
            false => "of a kind of your own",
        };
        let what = match claim.as_str() {
            "" => String::new(),
            claim => format!(", which gave {claim}"),
        };
        to.note(of, format!("mapper {name} is left out: {kind}{what}"));
    }

    /// Keeps what it says of attributes for when the users are read.
    fn settle(&self, of: &str, to: &mut Import) -> Result<(), String> {
        let is_settled = match &self.attribute {
            Some(attribute) => to.attributes.settle_form(attribute, &self.config)?,
            None => self.kind != ADDRESS || to.attributes.settle_address(&self.config)?,
        };
        if !is_settled {
            let name = &self.name;
            let note = format!(
                "mapper {name}: its claim has the form here that another mapper of its attributes \
                 gave: another JSON type, or an array"
            );
            to.note(of, note);
        }
        Ok(())
    }
}

/// What a mapper gives is called so where it has no name for it.
fn unsaid_claim(kind: &str) -> &'static str {
    match kind {
        FULL_NAME => "name",
        ADDRESS => "address",
        _ => "",
    }
}

/// Reads the mappers of a scope or a client.
pub(super) fn read(row: &Row<'_>, of: &str, to: &mut Import) -> Result<Mapped, String> {
    let mut mapped = Mapped::default();
    for mapper in Mapper::all_of(row)? {
        if !mapper.is_told(of, to) {
            add(&mapper, of, &mut mapped, to)?;
        }
    }
    Ok(mapped)
}

/// An audience of access tokens. Where a client is named, the other name does not count there.
fn add_audience(
    mapper: &Mapper<'_>,
    of: &str,
    mapped: &mut Mapped,
    to: &mut Import,
) -> Result<(), String> {
    let named = mapper.config.text("included.client.audience")?;
    let is_client = named.is_some();
    let custom = mapper.config.text("included.custom.audience")?;
    let audience = named.or(custom).unwrap_or_default();
    let why_not = if !mapper.config.flag("access.token.claim", false)? {
        String::from("it was none of access tokens, and in ID tokens the client alone is one here")
    } else if is_client || to.clients.contains(&audience) {
        // Clients and resources share one name space.
        String::from("it is a client: call the API otherwise")
    } else if let Err(rule) = token_name(&audience) {
        format!("a name of a resource {rule}")
    } else {
        mapped.audiences.insert(audience);
        return Ok(());
    };
    let name = &mapper.name;
    to.note(
        of,
        format!("the audience of mapper {name} is left out: {why_not}"),
    );
    Ok(())
}

fn add(mapper: &Mapper<'_>, of: &str, mapped: &mut Mapped, to: &mut Import) -> Result<(), String> {
    let Mapper {
        name,
        kind,
        claim,
        config,
        ..
    } = mapper;
    let is_for_people = mapper.is_for_people()?;
    let is_for_access = config.flag("access.token.claim", false)?;
    if kind == "oidc-audience-mapper" {
        return add_audience(mapper, of, mapped, to);
    }
    // A dot makes an object there.
    let has_claim = own_claim(claim).is_ok() && !claim.contains('.');
    if kind == HARDCODED && has_claim && is_for_access && of.starts_with("client ") {
        if mapped.fixed.0.contains_key(claim) {
            to.note(
                of,
                format!("mapper {name} is left out: another gives {claim}"),
            );
            return Ok(());
        }
        let value = config.text("claim.value")?.unwrap_or_default();
        let json_type = config.text("jsonType.label")?.unwrap_or_default();
        mapped.fixed.set(claim, typed(&json_type, &value));
        if is_for_people {
            to.note(
                of,
                format!("{claim} is in access tokens alone here (mapper {name})"),
            );
        }
        return Ok(());
    }
    let source = mapper.source(to)?;
    let Some(source) = source.filter(|source| has_claim && own_claim(source).is_ok()) else {
        mapper.note_left_out(of, to);
        return Ok(());
    };
    mapper.settle(of, to)?;
    to.names_groups |= source == GROUP_NAMES;
    let of_people = !is_for_people || give(&mut mapped.identity, &source, claim);
    let of_access = !is_for_access || give(&mut mapped.access, &source, claim);
    if !(of_people && of_access) {
        let note = format!(
            "mapper {name} is left out: another gives {claim}, or the same by another name. \
             Register a scope of its own for it"
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

/// Reads a scope that is built in here, or that says nothing here. What its mappers gave beside
/// that has a line.
pub(super) fn read_built_in(row: &Row<'_>, name: &str, to: &mut Import) -> Result<(), String> {
    let of = format!("scope {name}");
    let here = built_in_scopes().into_iter().find(|ours| ours.name == name);
    let here = here.map(|ours| ours.claims).unwrap_or_default();
    let mut given = BTreeSet::new();
    for mapper in Mapper::all_of(row)? {
        let claim = &mapper.claim;
        if ITS_CLAIMS.contains(&(name, claim)) || mapper.is_told(&of, to) {
            continue;
        }
        if mapper.is_built_in(&here, to)? {
            if mapper.is_for_people()? {
                given.insert(claim.clone());
            }
            mapper.settle(&of, to)?;
        } else {
            mapper.note_left_out(&of, to);
        }
    }
    narrow(name, &here, &given, to);
    Ok(())
}

/// Where a scope about people gave less there than it does here, it is registered with what it
/// gave: nobody reads more after the move.
fn narrow(name: &str, here: &[String], given: &BTreeSet<String>, to: &mut Import) {
    if !here.iter().any(|claim| is_personal(claim)) || here.iter().all(|one| given.contains(one)) {
        return;
    }
    let mut claims = ImportedObject::default();
    for claim in here.iter().filter(|claim| given.contains(*claim)) {
        claims.set(claim, claim.as_str());
    }
    let scope = [("name", json!(name)), ("claims", json!(claims.0))];
    let of = format!("scope {name}");
    to.push(ObjectKind::IdentityScope, &of, scope.into());
    to.note(
        &of,
        "gives fewer claims than the scope of that name here: it is registered with those that it \
         gave in ID tokens or UserInfo",
    );
}

/// Whether the claim has a better source than an attribute, which some realms let people write
/// themselves.
pub(super) fn is_vouched(claim: &str) -> bool {
    let mut of_account = table("claims of Keycloak");
    of_account.any(|[ours, ..]| ours == claim)
        || ["name", super::ROLE, super::GROUPS, GROUP_NAMES].contains(&claim)
}

fn of_account(member: &str) -> Option<String> {
    let mut all = table("claims of Keycloak");
    all.find(|[_, theirs, _]| *theirs == member)
        .map(|[ours, ..]| ours.to_owned())
}

const ADDRESS: &str = "oidc-address-mapper";
const ATTRIBUTE: &str = "oidc-usermodel-attribute-mapper";
const FULL_NAME: &str = "oidc-full-name-mapper";
const HARDCODED: &str = "oidc-hardcoded-claim-mapper";

/// What Keycloak's own mappers give in scopes that have other claims here, or none.
const ITS_CLAIMS: [(&str, &str); 10] = [
    ("basic", "auth_time"),
    ("microprofile-jwt", "upn"),
    ("microprofile-jwt", "groups"),
    ("organization", "organization"),
    ("roles", "realm_access.roles"),
    ("roles", "resource_access.${client_id}.roles"),
    ("service_account", "client_id"),
    ("service_account", "clientId"),
    ("service_account", "clientHost"),
    ("service_account", "clientAddress"),
];
