//! Protocol mappers, which say there what tokens carry: they become claims and audiences of scopes,
//! and fixed claims of a client.

use std::collections::BTreeSet;

use super::super::{Import, ImportedObject, Moving, Read, Row, table};
use super::attributes::typed;
use super::roles::names_all_roles;
use super::scopes::OF_PEOPLE;
use gatepost_protocol::registration::kind::ObjectKind;
use gatepost_protocol::registration::names::{own_claim, token_name};
use gatepost_protocol::token::claims::{built_in_scopes, is_personal};

/// The claim with the last part of each group's path.
pub const GROUP_NAMES: &str = "group_names";
/// The claim with the roles of the realm alone. The claim `role` has those of clients, too.
pub const REALM_ROLES: &str = "realm_roles";

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
pub struct Mapped {
    /// From the user's claim to the name in UserInfo and the ID token.
    pub identity: ImportedObject,
    /// The same for access tokens.
    pub access: ImportedObject,
    pub audiences: BTreeSet<String>,
    /// Of access tokens, the same for everybody.
    pub fixed: ImportedObject,
}

/// Which tokens have what a mapper gives.
#[derive(Clone, Copy)]
struct Tokens {
    /// ID tokens or UserInfo.
    of_people: bool,
    access: bool,
}

struct Mapper<'r> {
    name: String,
    kind: String,
    /// What it gives is called so in tokens; `""` where it has no name.
    claim: String,
    /// Whether the name is a path to a member of an object.
    is_nested: bool,
    /// The attribute that it gives, if that is no member of the account.
    attribute: Option<String>,
    config: Row<'r>,
}

impl Mapper<'_> {
    /// Those of a scope or a client that say something.
    fn all_of<'r>(row: &Row<'r>) -> Read<Vec<Mapper<'r>>> {
        let mut all = Vec::new();
        for mapper in row.rows("protocolMappers")? {
            let kind = mapper.text("protocolMapper")?.unwrap_or_default();
            let config = mapper.nested("config")?;
            let Some(config) = config.filter(|_| !super::is_among(WITHOUT_LOSS, &kind)) else {
                continue;
            };
            let path = config.text("claim.name")?;
            let path = path.unwrap_or_else(|| unsaid_claim(&kind).to_owned());
            // A backslash makes the next character one of the name.
            let is_nested = path.replace(r"\\", "").replace(r"\.", "").contains('.');
            let claim = if is_nested {
                path
            } else {
                path.replace('\\', "")
            };
            let attribute = config.text("user.attribute")?.filter(|_| kind == ATTRIBUTE);
            all.push(Mapper {
                name: mapper.text("name")?.unwrap_or_default(),
                claim,
                is_nested,
                kind,
                attribute: attribute.filter(|name| of_account(name).is_none() && !is_vouched(name)),
                config,
            });
        }
        Ok(all)
    }

    /// Whether the built-in scope with these claims gives here what the mapper gave. An attribute
    /// may become that claim for it.
    fn is_built_in(&self, here: &[String], to: &mut Import) -> Read<bool> {
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
    fn source(&self, to: &Import) -> Read<Option<String>> {
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
            "oidc-group-membership-mapper" if self.config.flag_or("full.path", true)? => {
                Some(super::GROUPS.to_owned())
            }
            "oidc-group-membership-mapper" => Some(GROUP_NAMES.to_owned()),
            // Of several roles it gave any one where it was not multivalued.
            REALM_ROLE_MAPPER
                if self.config.flag("multivalued")? && self.config.value(ROLE_PREFIX).is_none() =>
            {
                Some(REALM_ROLES.to_owned())
            }
            _ => None,
        })
    }

    /// Whether ID tokens or UserInfo have it. What is not said is not in the token there; UserInfo
    /// is as the ID token.
    fn is_for_people(&self) -> Read<bool> {
        let is_for_id_tokens = self.config.flag("id.token.claim")?;
        let is_for_userinfo = self
            .config
            .flag_or("userinfo.token.claim", is_for_id_tokens)?;
        Ok(is_for_id_tokens || is_for_userinfo)
    }

    fn tokens(&self) -> Read<Tokens> {
        Ok(Tokens {
            of_people: self.is_for_people()?,
            access: self.config.flag("access.token.claim")?,
        })
    }

    /// Whether a token of ours can have the claim.
    fn has_claim(&self) -> bool {
        own_claim(&self.claim).is_ok() && !self.is_nested
    }

    /// Notes what it did, where that has a line of its own.
    fn is_told(&self, moving: &mut Moving<'_>) -> bool {
        let told = WITHOUT_SCOPE.iter().find(|(kind, _)| self.kind == *kind);
        if let Some((_, text)) = told {
            moving.note(*text);
        }
        told.is_some()
    }

    fn note_left_out(&self, moving: &mut Moving<'_>) {
        let Mapper {
            name, kind, claim, ..
        } = self;
        // Others are named by whoever wrote them.
        let kind = if kind.starts_with("oidc-") {
            kind.as_str()
        } else {
            "of a kind of your own"
        };
        let what = match claim.as_str() {
            "" => String::new(),
            claim => format!(", which gave {claim}"),
        };
        moving.note(format!("mapper {name} is left out: {kind}{what}"));
    }

    /// Keeps what it says of attributes for when the users are read.
    fn settle(&self, moving: &mut Moving<'_>) -> Read {
        let attributes = &mut moving.to.attributes;
        let is_settled = match &self.attribute {
            Some(attribute) => attributes.settle_form(attribute, &self.config)?,
            None => self.kind != ADDRESS || attributes.settle_address(&self.config)?,
        };
        if !is_settled {
            let name = &self.name;
            moving.note(format!(
                "mapper {name}: its claim has the form here that another mapper of its attributes \
                 gave: another JSON type, or an array"
            ));
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

impl Moving<'_> {
    /// Reads the mappers of a scope or a client.
    pub fn mapped(&mut self) -> Read<Mapped> {
        let mut mapped = Mapped::default();
        for mapper in Mapper::all_of(self.row)? {
            if mapper.is_told(self) {
                continue;
            }
            let tokens = mapper.tokens()?;
            let is_fixed = tokens.access && self.of.starts_with("client ") && mapper.has_claim();
            match mapper.kind.as_str() {
                "oidc-audience-mapper" => self.add_audience(&mapper, tokens, &mut mapped)?,
                REALM_ROLE_MAPPER if !names_all_roles(self.row)? => mapper.note_left_out(self),
                HARDCODED if is_fixed => self.add_fixed(&mapper, tokens, &mut mapped)?,
                _ => self.add_claim(&mapper, tokens, &mut mapped)?,
            }
        }
        Ok(mapped)
    }

    /// An audience of access tokens. Where a client is named, the other name does not count there.
    fn add_audience(&mut self, mapper: &Mapper<'_>, tokens: Tokens, mapped: &mut Mapped) -> Read {
        let named = mapper.config.text("included.client.audience")?;
        let is_client = named.is_some();
        let custom = mapper.config.text("included.custom.audience")?;
        let audience = named.or(custom).unwrap_or_default();
        let why_not = if !tokens.access {
            String::from(
                "it was none of access tokens, and in ID tokens the client alone is one here",
            )
        } else if is_client || self.to.clients.contains(&audience) {
            // Clients and resources share one name space.
            String::from("it is a client: call the API otherwise")
        } else if let Err(rule) = token_name(&audience) {
            format!("a name of a resource {rule}")
        } else {
            mapped.audiences.insert(audience);
            return Ok(());
        };
        let name = &mapper.name;
        self.note(format!(
            "the audience of mapper {name} is left out: {why_not}"
        ));
        Ok(())
    }

    /// A claim of a client's tokens that is the same for everybody.
    fn add_fixed(&mut self, mapper: &Mapper<'_>, tokens: Tokens, mapped: &mut Mapped) -> Read {
        let Mapper {
            name,
            claim,
            config,
            ..
        } = mapper;
        if mapped.fixed.has(claim) {
            self.note(format!("mapper {name} is left out: another gives {claim}"));
            return Ok(());
        }
        let value = config.text("claim.value")?.unwrap_or_default();
        let json_type = config.text("jsonType.label")?.unwrap_or_default();
        mapped.fixed.set(claim, typed(&json_type, &value));
        if tokens.of_people {
            self.note(format!(
                "{claim} is in access tokens alone here (mapper {name})"
            ));
        }
        Ok(())
    }

    fn add_claim(&mut self, mapper: &Mapper<'_>, tokens: Tokens, mapped: &mut Mapped) -> Read {
        let Mapper { name, claim, .. } = mapper;
        let source = mapper.source(self.to)?;
        let is_possible = |source: &String| mapper.has_claim() && own_claim(source).is_ok();
        let Some(source) = source.filter(is_possible) else {
            mapper.note_left_out(self);
            return Ok(());
        };
        mapper.settle(self)?;
        self.to.sources.insert(source.clone());
        let of_people = !tokens.of_people || give(&mut mapped.identity, &source, claim);
        let of_access = !tokens.access || give(&mut mapped.access, &source, claim);
        if !(of_people && of_access) {
            self.note(format!(
                "mapper {name} is left out: another gives {claim}, or the same by another name. \
                 Register a scope of its own for it"
            ));
        }
        Ok(())
    }
}

/// A scope gives a claim under one name, and a name to one claim.
fn give(claims: &mut ImportedObject, source: &str, claim: &str) -> bool {
    let is_free = claims.0.values().all(|other| *other != claim);
    if is_free && !claims.has(source) {
        claims.set(source, claim);
    }
    claims.is(source, claim)
}

/// Reads a scope that is built in here, or that says nothing here. What its mappers gave beside
/// that has a line.
pub fn read_built_in(row: &Row<'_>, name: &str, to: &mut Import) -> Read {
    let mut scope = Moving::new(row, format!("scope {name}"), to);
    let here = built_in_scopes().into_iter().find(|ours| ours.name == name);
    let here = here.map(|ours| ours.claims).unwrap_or_default();
    if here.iter().any(|claim| is_personal(claim)) && row.rows("protocolMappers")?.is_empty() {
        scope.note(
            "has no mappers there and gives nothing. Here it gives what the scope of that name \
             does: register one without claims where it is to give nothing",
        );
        return Ok(());
    }
    let mut given = BTreeSet::new();
    let mut added = Vec::new();
    for mapper in Mapper::all_of(row)? {
        let claim = &mapper.claim;
        // Keycloak's own mappers, in scopes that have other claims here, or none.
        let mut its_claims = table("claims that scopes of Keycloak give");
        let is_its = its_claims.any(|[of, given, _]| of == name && given == claim);
        if is_its || mapper.is_told(&mut scope) {
            continue;
        }
        if mapper.is_built_in(&here, scope.to)? {
            if mapper.is_for_people()? {
                given.insert(claim.clone());
            }
            mapper.settle(&mut scope)?;
        } else if here.is_empty() {
            mapper.note_left_out(&mut scope);
        } else {
            added.push(mapper);
        }
    }
    let is_personal = here.iter().any(|claim| is_personal(claim));
    if !is_personal {
        given.extend(here.iter().cloned());
    }
    let mut mapped = Mapped::default();
    for claim in here.iter().filter(|claim| given.contains(*claim)) {
        mapped.identity.set(claim, claim.as_str());
    }
    let stock = mapped.identity.0.len();
    for mapper in added {
        scope.add_claim(&mapper, mapper.tokens()?, &mut mapped)?;
    }
    if stock < here.len() {
        scope.note(
            "gives fewer claims than the scope of that name here: it is registered with those that \
             it gave in ID tokens or UserInfo",
        );
    }
    if mapped.identity.0.len() != here.len() || stock < here.len() {
        scope.note_places(&mapped.access, &mapped.identity, &OF_PEOPLE);
        scope.set("name", name);
        scope.set("claims", mapped.identity.0);
        scope.push(ObjectKind::IdentityScope);
    }
    Ok(())
}

/// Whether the claim has a better source than an attribute, which some realms let people write
/// themselves.
pub fn is_vouched(claim: &str) -> bool {
    let mut of_account = table("claims of Keycloak");
    of_account.any(|[ours, ..]| ours == claim)
        || ["name", super::ROLE, super::GROUPS, GROUP_NAMES, REALM_ROLES].contains(&claim)
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
const REALM_ROLE_MAPPER: &str = "oidc-usermodel-realm-role-mapper";
const ROLE_PREFIX: &str = "usermodel.realmRoleMapping.rolePrefix";
