//! `/scim/v2/Users`: finding, adding, changing and removing users (RFC 7644 §3).

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::ScimRequest;
use super::list::ListRequest;
use crate::endpoints::decoded;
use crate::scim::attribute::{GATEPOST_SCHEMA, UserAttribute, UserAttributes};
use crate::scim::error::ScimError;
use crate::scim::patch::patched;
use crate::scim::projection::Projection;
use crate::scim::resource::{self, text};
use crate::statements::scim_users::{self, ScimUser};
use gatepost_protocol::login::letters::stored_address;
use gatepost_protocol::login::mail_link::INVITATION_LIFETIME;
use gatepost_protocol::login::password::PasswordFlaw;
use gatepost_protocol::login::password_link::LinkOrigin;
use gatepost_protocol::registration::timestamp;
use gatepost_protocol::words::identifiers::{Subject, TenantName};
use gatepost_protocol::words::json::{JsonObject, SetMember};
use gatepost_protocol::words::mail_address::MailAddress;
use gatepost_protocol::words::parameters::Parameters;
use gatepost_protocol::words::secret::SecretText;
use gatepost_protocol::words::strength::Strength;
use gatepost_server::app::failure::{Failure, Result};
use gatepost_server::app::letters::{AccountChange, AskedBy, Errand};
use gatepost_server::endpoints::letters;
use gatepost_server::endpoints::links::to_pass_on;
use gatepost_server::endpoints::notices::{self, Noticed};
use gatepost_server::http::{Method, Response};
use gatepost_server::keys::random;
use gatepost_server::pages::language::Language;
use gatepost_store::StoreError;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::users::UserRow;

const SET_PASSWORD: &str = "scim.password";
/// How often a change is tried again that another one came before.
const TRIES: u32 = 3;

impl ScimRequest<'_> {
    /// `/Users`
    pub fn handle_all(&self) -> Result<Response> {
        match self.request.method {
            Method::Get | Method::Head => ListRequest::read(self)?.answer(),
            Method::Post => self.create(),
            _ => Err(not_allowed()),
        }
    }

    /// `/Users/{id}`, where `id` is the subject.
    pub fn handle_one(&self, id: &str) -> Result<Response> {
        let subject = Subject::new(decoded(id).map_err(|_| unknown())?);
        // Before anything is written: a query that is wrong.
        self.projection()?;
        match self.request.method {
            Method::Get | Method::Head => self.shown(&self.found(&subject)?),
            Method::Put => {
                let body = self.body()?;
                let wanted = resource::read(&body)?;
                self.change(&subject, |user| {
                    Ok(resource::replaced_by(user, &wanted, &body))
                })
            }
            Method::Patch => {
                let operations = self.body()?;
                self.change(&subject, |user| {
                    patched(&resource::attributes(user), &operations)
                })
            }
            Method::Delete => self.remove(&subject),
            _ => Err(not_allowed()),
        }
    }

    fn create(&self) -> Result<Response> {
        let wanted = resource::read(&self.body()?)?;
        let mut new = resource::new_user(Subject::of_random(random::bytes()), &wanted)?;
        new.tenant = self.tenant_of_new(new.tenant)?;
        self.drop_admin_roles(&mut new.claims);
        let wish = text(&wanted, UserAttribute::Invite);
        let to = self.invited_at(&new, wish)?;
        new.password_hash = self.new_password(&wanted)?;
        let projection = self.projection()?;
        let subject = &new.sub;
        // The statement that adds the user writes all events, and after it the database is not
        // asked again. A request that failed then would leave somebody without an invitation, and
        // whoever repeats it is told that the name is taken.
        let detail = json!({"by": "scim"});
        let added = self.event("user_added", subject, detail);
        let mut events = scim_users::with_sharing(&self.app.store, &new, added)?;
        let expires_at = self.app.now().plus(INVITATION_LIFETIME);
        let gets_link = wish.is_some() && to.is_none();
        if gets_link {
            let detail = json!({"by": "scim", "expires_at": timestamp::format(expires_at)});
            events.push(self.event("link_made", subject, detail));
        }
        let external_id = text(&wanted, UserAttribute::ExternalId);
        let added = scim_users::insert(&self.app.store, &new, external_id, &events);
        let (user, found) = added.map_err(|error| self.taken(error))?;
        let mut resource = resource::show(&user, &self.location(subject), &projection);
        if let Some(to) = &to {
            let letter = letters::of_link(
                self.app,
                &found,
                to,
                Language::of_house(&self.app.config),
                LinkOrigin::ByProgram,
                None,
            );
            let errand = Errand::Written(letter);
            notices::hand_over(self.app, &self.asked_by(), Some(subject), errand);
        }
        if gets_link {
            let link = to_pass_on(self.app, &found, LinkOrigin::ByProgram, expires_at);
            resource::put_below(&mut resource, GATEPOST_SCHEMA, |ours| {
                ours.set("inviteLink", link);
            });
        }
        Ok(self.with_address(super::json_answer(201, &resource), &user))
    }

    /// Where the letter goes that invites somebody new; `None` without a letter.
    fn invited_at(
        &self,
        new: &UserRow,
        wish: Option<&str>,
    ) -> Result<Option<MailAddress>, ScimError> {
        match wish {
            None | Some("link") => Ok(None),
            Some("mail") => {
                let address = stored_address(&new.claims).map(MailAddress::parse);
                match (address, self.app.letters.from(), &new.username) {
                    (Some(Ok(to)), Some(_), Some(_)) => Ok(Some(to)),
                    _ => Err(ScimError::invalid_value(
                        "invite by mail needs GATEPOST_SMTP_URL, a user name and an address in \
                         emails",
                    )),
                }
            }
            Some(_) => Err(ScimError::invalid_value("invite must be link or mail")),
        }
    }

    fn asked_by(&self) -> AskedBy {
        AskedBy {
            source: self.request.source,
            request_id: self.request.id.clone(),
            language: self.app.config.language,
            browser: None,
            at: self.app.now(),
        }
    }

    /// The client's only tenant, else the one that was named, else none.
    fn tenant_of_new(&self, named: Option<TenantName>) -> Result<Option<TenantName>, ScimError> {
        let only = self.only_tenant.as_deref().map(TenantName::new);
        let tenant = named.or(only);
        let name = tenant.as_ref().map(TenantName::as_str).unwrap_or_default();
        if !self.reach.iter().any(|reached| reached == name) {
            return Err(ScimError::invalid_value(
                "tenant must be one that this client reaches",
            ));
        }
        Ok(tenant)
    }

    /// Reads the user, changes them, and writes that, as long as nobody else wrote meanwhile. With
    /// `If-Match` it is tried once.
    fn change(
        &self,
        subject: &Subject,
        wanted: impl Fn(&ScimUser) -> Result<UserAttributes, ScimError>,
    ) -> Result<Response> {
        // A further try needs no other one.
        let mut hash = None;
        for _ in 0..TRIES {
            let before = self.found(subject)?;
            self.require_version(&before)?;
            let attributes = wanted(&before)?;
            let after = self.after_change(&before, &attributes)?;
            let takes_password = before.row.strongest_acr == Strength::SignedIn
                && after.row.username.is_some()
                && !self.app.is_administrator(&before.row.claims);
            hash = match hash {
                Some(hash) if takes_password => Some(hash),
                None if takes_password => self.new_password(&attributes)?,
                _ => None,
            };
            if after == before && hash.is_none() {
                let asks_for_password = attributes.contains_key(&UserAttribute::Password)
                    && self.scope.contains(SET_PASSWORD);
                if asks_for_password && !takes_password && !self.disables_by_put(&attributes) {
                    return Err(ScimError::plain(
                        403,
                        "The password of an administrator, or of somebody with a second \
                                factor or without a user name, is not set here.",
                    )
                    .into());
                }
                // Whoever repeats a change is told so only where the first one holds for good.
                self.app.store.confirm()?;
                return self.shown(&before);
            }
            let username = after.row.username.as_deref();
            if let Some(name) = username.filter(|_| username != before.row.username.as_deref())
                && scim_users::find_sharing(&self.app.store, &after.row, name)?.is_some()
            {
                return Err(self.taken(StoreError::Taken(String::from("email"))));
            }
            let mut changed = changed_names(
                &resource::attributes(&before),
                &resource::attributes(&after),
            );
            if hash.is_some() {
                changed.push(UserAttribute::Password.as_str());
            }
            let detail = json!({"by": "scim", "changed": changed});
            let event = self.event("user_changed", subject, detail);
            let events = if resource::verifies_more_than(&after.row, &before.row) {
                scim_users::with_sharing(&self.app.store, &after.row, event)?
            } else {
                vec![event]
            };
            let written =
                scim_users::update(&self.app.store, &self.reach, &after, hash.as_ref(), &events);
            if let Some(user) = written.map_err(|error| self.taken(error))? {
                self.tell_old_address(&before, &after);
                return self.shown(&user);
            }
        }
        Err(ScimError::plain(409, "The user was changed meanwhile. Try again.").into())
    }

    /// The user as they are after the change, where this client may make it.
    fn after_change(
        &self,
        before: &ScimUser,
        attributes: &UserAttributes,
    ) -> Result<ScimUser, ScimError> {
        let mut after = resource::changed_to(before, attributes)?;
        let sets_passwords = self.scope.contains(SET_PASSWORD);
        if self.app.is_administrator(&before.row.claims) {
            let mut only_enabled = before.clone();
            only_enabled.row.enabled = after.row.enabled;
            // Whoever leaves is out, whatever else the request says: Okta's PUT names much else.
            // Repeated, it is answered the same.
            let is_disabled_now = before.row.enabled && says_inactive(attributes);
            if is_disabled_now || self.disables_by_put(attributes) {
                return Ok(only_enabled);
            }
            let asks_for_password =
                sets_passwords && attributes.contains_key(&UserAttribute::Password);
            if after != only_enabled || asks_for_password {
                return Err(of_admin());
            }
        } else {
            self.drop_admin_roles(&mut after.row.claims);
        }
        if resource::verifies_more_than(&after.row, &before.row) && !sets_passwords {
            // A letter to it would set their password.
            return Err(ScimError::plain(
                403,
                "Only a token with scim.password makes an address of somebody verified.",
            ));
        }
        Ok(after)
    }

    /// A PUT says everything anew: also of a user who is disabled already that they are to be.
    fn disables_by_put(&self, attributes: &UserAttributes) -> bool {
        self.request.method == Method::Put && says_inactive(attributes)
    }

    /// Tells the address that the user had that it is theirs no longer.
    fn tell_old_address(&self, before: &ScimUser, after: &ScimUser) {
        if after.row.claims.get("email") == before.row.claims.get("email") {
            return;
        }
        let noticed = Noticed {
            sub: &before.row.sub,
            name: before.row.designation(),
            claims: &before.row.claims,
        };
        notices::notify(self.app, &self.asked_by(), &noticed, AccountChange::Address);
    }

    fn remove(&self, subject: &Subject) -> Result<Response> {
        for _ in 0..TRIES {
            let user = match self.found(subject) {
                Ok(user) => user,
                Err(refusal) => {
                    // Whoever repeats this is told that nobody is there only where that holds for
                    // good.
                    self.app.store.confirm()?;
                    return Err(refusal);
                }
            };
            self.require_version(&user)?;
            if self.app.is_administrator(&user.row.claims) {
                return Err(of_admin().into());
            }
            let event = self.event("user_removed", subject, json!({"by": "scim"}));
            let version = Some(user.version.as_str());
            if scim_users::remove(&self.app.store, &self.reach, subject, version, &event)? {
                return Ok(Response::empty(204).header("Cache-Control", "no-store"));
            }
        }
        Err(ScimError::plain(409, "The user was changed meanwhile. Try again.").into())
    }

    /// No program makes somebody an administrator, who was none before.
    fn drop_admin_roles(&self, claims: &mut JsonObject) {
        self.app.drop_admin_roles(self.request, "SCIM", claims);
    }

    fn found(&self, subject: &Subject) -> Result<ScimUser> {
        let user = scim_users::find(&self.app.store, &self.reach, subject)?;
        Ok(user.ok_or_else(unknown)?)
    }

    /// RFC 9110 §13.1.1.
    fn require_version(&self, user: &ScimUser) -> Result<(), ScimError> {
        let mut wanted = self.request.headers.all("if-match").peekable();
        if wanted.peek().is_none() {
            return Ok(());
        }
        let tag = resource::entity_tag(user);
        let mut tags = wanted.flat_map(|line| line.split(',')).map(str::trim);
        if tags.any(|one| one == "*" || one == tag) {
            Ok(())
        } else {
            Err(ScimError::plain(
                412,
                "The user has another version by now.",
            ))
        }
    }

    /// The hash of a password that was sent, where the client may set passwords; elsewhere it is
    /// left out: Okta sends one always.
    fn new_password(&self, wanted: &UserAttributes) -> Result<Option<SecretText>> {
        let Some(password) = text(wanted, UserAttribute::Password) else {
            return Ok(None);
        };
        if !self.scope.contains(SET_PASSWORD) {
            return Ok(None);
        }
        let flaw = self.app.password_rules.check(password).err();
        if let Some(rule) = flaw.map(PasswordFlaw::rule) {
            return Err(ScimError::invalid_value(format!("password: {rule}")).into());
        }
        let hashing = self
            .app
            .take_hashing_turn(self.request, Some(&self.client_id), None)?;
        Ok(Some(hashing.hash(&SecretText::new(password))?))
    }

    fn event<'a>(&'a self, name: &'a str, subject: &'a Subject, detail: Value) -> AuditEvent<'a> {
        AuditEvent {
            event: name,
            client_id: Some(&self.client_id),
            sub: Some(subject),
            detail,
            ..self.request.caused(AuditEvent::default())
        }
    }

    fn shown(&self, user: &ScimUser) -> Result<Response> {
        let resource = resource::show(user, &self.location(&user.row.sub), &self.projection()?);
        Ok(self.with_address(super::json_answer(200, &resource), user))
    }

    /// What the query asks to be shown.
    pub fn projection(&self) -> Result<Projection> {
        let query = self.query()?;
        let attributes = query.single("attributes")?;
        let excluded = query.single("excludedAttributes")?;
        Ok(Projection::new(attributes, excluded))
    }

    pub fn query(&self) -> Result<&Parameters> {
        Ok(self.request.query_parameters()?)
    }

    fn with_address(&self, response: Response, user: &ScimUser) -> Response {
        response
            .header("ETag", resource::entity_tag(user))
            .header("Location", self.location(&user.row.sub))
    }

    /// An imported subject may hold a slash.
    pub fn location(&self, subject: &Subject) -> String {
        let id = utf8_percent_encode(subject.as_str(), NON_ALPHANUMERIC);
        self.address(&format!("Users/{id}"))
    }
}

fn says_inactive(attributes: &UserAttributes) -> bool {
    attributes.get(&UserAttribute::Active) == Some(&Value::from(false))
}

/// The names of what is another than before, for the audit log.
fn changed_names(before: &UserAttributes, after: &UserAttributes) -> Vec<&'static str> {
    let is_another = |attribute: &UserAttribute| before.get(attribute) != after.get(attribute);
    UserAttribute::ALL
        .into_iter()
        .filter(is_another)
        .map(UserAttribute::as_str)
        .collect()
}

fn of_admin() -> ScimError {
    ScimError::plain(403, "Of an administrator only active is written here.")
}

fn unknown() -> ScimError {
    ScimError::plain(404, "There is no such user.")
}

fn not_allowed() -> Failure {
    ScimError::plain(405, "The method is not allowed here.").into()
}
