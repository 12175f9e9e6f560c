//! `/scim/v2/Users`: finding, adding, changing and removing users (RFC 7644 §3).

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::list::ListRequest;
use super::{Admission, ScimRefusal, address, body, taken};
use crate::scim::attribute::{GATEPOST_SCHEMA, UserAttribute, UserAttributes};
use crate::scim::error::ScimError;
use crate::scim::patch::patched;
use crate::scim::projection::Projection;
use crate::scim::resource::{self, text};
use crate::statements::scim_users::{self, ScimProfile, ScimUser};
use gatepost_protocol::login::letters::stored_address;
use gatepost_protocol::login::mail_link::INVITATION_LIFETIME;
use gatepost_protocol::login::password::PasswordFlaw;
use gatepost_protocol::login::password_link::LinkOrigin;
use gatepost_protocol::registration::timestamp;
use gatepost_protocol::words::identifiers::{Subject, TenantName};
use gatepost_protocol::words::mail_address::MailAddress;
use gatepost_protocol::words::parameters::Parameters;
use gatepost_protocol::words::secret::SecretText;
use gatepost_server::app::App;
use gatepost_server::app::failure::Failure;
use gatepost_server::app::letters::{AccountChange, AskedBy, Errand};
use gatepost_server::endpoints::letters;
use gatepost_server::endpoints::links::to_pass_on;
use gatepost_server::endpoints::notices::{self, Noticed};
use gatepost_server::http::{Method, Request, Response};
use gatepost_server::keys::random;
use gatepost_server::pages::language::Language;
use gatepost_store::StoreError;
use gatepost_store::audit_events::AuditEvent;

const SET_PASSWORD: &str = "scim.password";
/// How often a change is tried again that another one came before.
const TRIES: u32 = 3;

/// `/Users`
pub(super) fn handle_all(
    app: &App,
    request: &Request,
    admission: &Admission,
) -> Result<Response, ScimRefusal> {
    match request.method {
        Method::Get | Method::Head => ListRequest::read(app, request, admission)?.answer(),
        Method::Post => create(app, request, admission),
        Method::Put | Method::Patch | Method::Delete | Method::Options | Method::Other => {
            Err(not_allowed())
        }
    }
}

/// `/Users/{id}`, where `id` is the subject.
pub(super) fn handle_one(
    app: &App,
    request: &Request,
    admission: &Admission,
    id: &str,
) -> Result<Response, ScimRefusal> {
    let subject = decoded(id).ok_or_else(unknown)?;
    // Before anything is written: a query that is wrong.
    projection(request)?;
    match request.method {
        Method::Get | Method::Head => shown(app, request, &found(app, admission, &subject)?),
        Method::Put => {
            let wanted = resource::read(&body(request)?)?;
            change(app, request, admission, &subject, |user| {
                Ok(resource::replaced_by(user, &wanted))
            })
        }
        Method::Patch => {
            let operations = body(request)?;
            change(app, request, admission, &subject, |user| {
                patched(&resource::attributes(user), &operations)
            })
        }
        Method::Delete => remove(app, request, admission, &subject),
        Method::Post | Method::Options | Method::Other => Err(not_allowed()),
    }
}

/// `None` for what nobody's subject is.
fn decoded(id: &str) -> Option<Subject> {
    let id = percent_decode_str(id).decode_utf8().ok()?;
    (!id.contains('\0')).then(|| Subject::new(id))
}

fn create(app: &App, request: &Request, admission: &Admission) -> Result<Response, ScimRefusal> {
    let wanted = resource::read(&body(request)?)?;
    let mut profile = resource::new_profile(&wanted)?;
    profile.tenant = tenant_of_new(admission, profile.tenant)?;
    drop_admin_roles(app, request, &mut profile.claims);
    let wish = text(&wanted, UserAttribute::Invite);
    let to = invited_at(app, &profile, wish)?;
    let hash = new_password(app, request, admission, &wanted)?;
    let projection = projection(request)?;
    let subject = Subject::of_random(random::bytes());
    // The statement that adds the user writes all events, and after it the database is not asked
    // again. A request that failed then would leave somebody without an invitation, and whoever
    // repeats it is told that the name is taken.
    let detail = json!({"by": "scim"});
    let added = event("user_added", admission, request, &subject, detail);
    let mut events = scim_users::with_sharing(&app.store, &profile, added)?;
    let expires_at = app.now().plus(INVITATION_LIFETIME);
    let gets_link = wish.is_some() && to.is_none();
    if gets_link {
        let detail = json!({"by": "scim", "expires_at": timestamp::format(expires_at)});
        events.push(event("link_made", admission, request, &subject, detail));
    }
    let external_id = text(&wanted, UserAttribute::ExternalId);
    let hash = hash.as_ref();
    let added = scim_users::insert(&app.store, &subject, &profile, external_id, hash, &events);
    let (user, found) = added.map_err(|error| taken(app, error))?;
    let mut resource = resource::show(&user, &location(app, &subject), &projection);
    if let Some(to) = &to {
        let letter = letters::of_link(
            app,
            &found,
            to,
            Language::of_house(&app.config),
            LinkOrigin::ByProgram,
        );
        let errand = Errand::Written(letter);
        notices::hand_over(app, &asked_by(app, request), Some(&subject), errand);
    }
    if gets_link {
        let link = to_pass_on(app, &found, LinkOrigin::ByProgram, expires_at);
        resource::put_below(&mut resource, GATEPOST_SCHEMA, |ours| {
            ours.insert(String::from("inviteLink"), Value::from(link));
        });
    }
    Ok(with_address(app, super::json_answer(201, &resource), &user))
}

/// Where the letter goes that invites somebody new; `None` without a letter.
fn invited_at(
    app: &App,
    profile: &ScimProfile,
    wish: Option<&str>,
) -> Result<Option<MailAddress>, ScimError> {
    match wish {
        None | Some("link") => Ok(None),
        Some("mail") => {
            let address = stored_address(&profile.claims).map(MailAddress::parse);
            match (address, app.letters.from(), &profile.username) {
                (Some(Ok(to)), Some(_), Some(_)) => Ok(Some(to)),
                _ => Err(ScimError::invalid_value(
                    "invite by mail needs GATEPOST_SMTP_URL, a user name and an address in emails",
                )),
            }
        }
        Some(_) => Err(ScimError::invalid_value("invite must be link or mail")),
    }
}

fn asked_by(app: &App, request: &Request) -> AskedBy {
    AskedBy {
        source: request.source,
        request_id: request.id.clone(),
        language: app.config.language,
    }
}

/// The client's only tenant, else the one that was named, else none.
fn tenant_of_new(
    admission: &Admission,
    named: Option<TenantName>,
) -> Result<Option<TenantName>, ScimError> {
    let only = admission.only_tenant.as_deref().map(TenantName::new);
    let tenant = named.or(only);
    let name = tenant.as_ref().map(TenantName::as_str).unwrap_or_default();
    if !admission.reach.iter().any(|reached| reached == name) {
        return Err(ScimError::invalid_value(
            "tenant must be one that this client reaches",
        ));
    }
    Ok(tenant)
}

/// Reads the user, changes them, and writes that, as long as nobody else wrote meanwhile. With
/// `If-Match` it is tried once.
fn change(
    app: &App,
    request: &Request,
    admission: &Admission,
    subject: &Subject,
    wanted: impl Fn(&ScimUser) -> Result<UserAttributes, ScimError>,
) -> Result<Response, ScimRefusal> {
    // A further try needs no other one.
    let mut hash = None;
    for _ in 0..TRIES {
        let before = found(app, admission, subject)?;
        require_version(request, &before)?;
        let attributes = wanted(&before)?;
        let after = after_change(app, request, admission, &before, &attributes)?;
        let takes_password = !before.has_second_factor
            && after.profile.username.is_some()
            && !app.is_administrator(&before.profile.claims);
        hash = match hash {
            Some(hash) if takes_password => Some(hash),
            None if takes_password => new_password(app, request, admission, &attributes)?,
            Some(_) | None => None,
        };
        if after == before && hash.is_none() {
            let asks_for_password = attributes.contains_key(&UserAttribute::Password)
                && admission.scope.contains(SET_PASSWORD);
            if asks_for_password && !takes_password && !disables_by_put(request, &attributes) {
                let rule = "The password of an administrator, or of somebody with a second factor \
                            or without a user name, is not set here.";
                return Err(ScimError::plain(403, rule).into());
            }
            // Whoever repeats a change is told so only where the first one holds for good.
            app.store.confirm()?;
            return shown(app, request, &before);
        }
        let username = after.profile.username.as_deref();
        if let Some(name) = username.filter(|_| username != before.profile.username.as_deref())
            && scim_users::is_address_of_another(&app.store, &after, name)?
        {
            return Err(taken(app, StoreError::Taken(String::from("email"))));
        }
        let mut changed = changed_names(
            &resource::attributes(&before),
            &resource::attributes(&after),
        );
        if hash.is_some() {
            changed.push(UserAttribute::Password.as_str());
        }
        let detail = json!({"by": "scim", "changed": changed});
        let event = event("user_changed", admission, request, subject, detail);
        let events = match resource::verifies_more_than(&after.profile, &before.profile) {
            true => scim_users::with_sharing(&app.store, &after.profile, event)?,
            false => vec![event],
        };
        let reach = admission.reach();
        let written = scim_users::update(&app.store, &reach, &after, hash.as_ref(), &events);
        if let Some(user) = written.map_err(|error| taken(app, error))? {
            tell_old_address(app, request, &before, &after);
            return shown(app, request, &user);
        }
    }
    Err(ScimError::plain(409, "The user was changed meanwhile. Try again.").into())
}

/// The user as they are after the change, where this client may make it.
fn after_change(
    app: &App,
    request: &Request,
    admission: &Admission,
    before: &ScimUser,
    attributes: &UserAttributes,
) -> Result<ScimUser, ScimError> {
    let mut after = resource::changed_to(before, attributes)?;
    let sets_passwords = admission.scope.contains(SET_PASSWORD);
    if app.is_administrator(&before.profile.claims) {
        let mut only_enabled = before.clone();
        only_enabled.profile.enabled = after.profile.enabled;
        // Whoever leaves is out, whatever else the request says: Okta's PUT names no roles, and
        // with them it would take the administrators' role. Repeated, it is answered the same.
        let is_disabled_now = before.profile.enabled && says_inactive(attributes);
        if is_disabled_now || disables_by_put(request, attributes) {
            return Ok(only_enabled);
        }
        let asks_for_password = sets_passwords && attributes.contains_key(&UserAttribute::Password);
        if after != only_enabled || asks_for_password {
            return Err(of_admin());
        }
    } else {
        drop_admin_roles(app, request, &mut after.profile.claims);
    }
    if resource::verifies_more_than(&after.profile, &before.profile) && !sets_passwords {
        // A letter to it would set their password.
        let rule = "Only a token with scim.password makes an address of somebody verified.";
        return Err(ScimError::plain(403, rule));
    }
    Ok(after)
}

fn says_inactive(attributes: &UserAttributes) -> bool {
    attributes.get(&UserAttribute::Active) == Some(&Value::from(false))
}

/// A PUT says everything anew: also of a user who is disabled already that they are to be.
fn disables_by_put(request: &Request, attributes: &UserAttributes) -> bool {
    request.method == Method::Put && says_inactive(attributes)
}

/// Tells the address that the user had that it is theirs no longer.
fn tell_old_address(app: &App, request: &Request, before: &ScimUser, after: &ScimUser) {
    if after.profile.claims.get("email") == before.profile.claims.get("email") {
        return;
    }
    let username = before.profile.username.as_deref();
    let noticed = Noticed {
        sub: &before.subject,
        name: username.unwrap_or(before.subject.as_str()),
        claims: &before.profile.claims,
    };
    notices::tell(
        app,
        &asked_by(app, request),
        &noticed,
        AccountChange::Address,
    );
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

fn remove(
    app: &App,
    request: &Request,
    admission: &Admission,
    subject: &Subject,
) -> Result<Response, ScimRefusal> {
    for _ in 0..TRIES {
        let user = match found(app, admission, subject) {
            Ok(user) => user,
            Err(refusal) => {
                // Whoever repeats this is told that nobody is there only where that holds for good.
                app.store.confirm()?;
                return Err(refusal);
            }
        };
        require_version(request, &user)?;
        if app.is_administrator(&user.profile.claims) {
            return Err(of_admin().into());
        }
        let event = event(
            "user_removed",
            admission,
            request,
            subject,
            json!({"by": "scim"}),
        );
        let version = Some(user.version.as_str());
        if scim_users::remove(&app.store, &admission.reach(), subject, version, &event)? {
            return Ok(Response::empty(204).header("Cache-Control", "no-store"));
        }
    }
    Err(ScimError::plain(409, "The user was changed meanwhile. Try again.").into())
}

fn of_admin() -> ScimError {
    ScimError::plain(403, "Of an administrator only active is written here.")
}

/// No program makes somebody an administrator, who was none before.
fn drop_admin_roles(app: &App, request: &Request, claims: &mut Map<String, Value>) {
    let administration = app.config.administration.as_ref();
    let before = Map::new();
    if administration.is_some_and(|set| set.keep_admin_roles(&before, claims)) {
        let id = &request.id;
        log::warn!("request {id}: SCIM gives the role of administrators: dropped");
    }
}

fn found(app: &App, admission: &Admission, subject: &Subject) -> Result<ScimUser, ScimRefusal> {
    let user = scim_users::find(&app.store, &admission.reach(), subject)?;
    Ok(user.ok_or_else(unknown)?)
}

/// RFC 9110 §13.1.1.
fn require_version(request: &Request, user: &ScimUser) -> Result<(), ScimError> {
    let mut wanted = request.headers.all("if-match").peekable();
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

/// The hash of a password that was sent, where the client may set passwords; elsewhere it is left
/// out: Okta sends one always.
fn new_password(
    app: &App,
    request: &Request,
    admission: &Admission,
    wanted: &UserAttributes,
) -> Result<Option<SecretText>, ScimRefusal> {
    let Some(password) = text(wanted, UserAttribute::Password) else {
        return Ok(None);
    };
    if !admission.scope.contains(SET_PASSWORD) {
        return Ok(None);
    }
    let flaw = app.password_rules.check(password).err();
    if let Some(rule) = flaw.map(PasswordFlaw::rule) {
        return Err(ScimError::invalid_value(format!("password: {rule}")).into());
    }
    let turn = app.take_hashing_turn(request, Some(&admission.client_id), None)?;
    Ok(Some(turn.hash(&SecretText::new(password))?))
}

pub(super) fn single<'a>(
    query: &'a Parameters,
    name: &str,
) -> Result<Option<&'a str>, ScimRefusal> {
    query
        .single(name)
        .map_err(|reason| ScimRefusal::Failed(Failure::from(reason)))
}

fn event<'a>(
    name: &'a str,
    admission: &'a Admission,
    request: &'a Request,
    subject: &'a Subject,
    detail: Value,
) -> AuditEvent<'a> {
    AuditEvent {
        event: name,
        client_id: Some(&admission.client_id),
        sub: Some(subject),
        detail,
        ..AuditEvent::default().by(request.source, &request.id)
    }
}

fn shown(app: &App, request: &Request, user: &ScimUser) -> Result<Response, ScimRefusal> {
    let resource = resource::show(user, &location(app, &user.subject), &projection(request)?);
    Ok(with_address(app, super::json_answer(200, &resource), user))
}

/// What the query asks to be shown.
pub(super) fn projection(request: &Request) -> Result<Projection, ScimRefusal> {
    let query = query(request)?;
    let attributes = single(&query, "attributes")?;
    let excluded = single(&query, "excludedAttributes")?;
    Ok(Projection::new(attributes, excluded))
}

pub(super) fn query(request: &Request) -> Result<Parameters, ScimRefusal> {
    let query = Parameters::parse(request.query.as_bytes());
    Ok(query.map_err(Failure::from)?)
}

fn with_address(app: &App, response: Response, user: &ScimUser) -> Response {
    response
        .header("ETag", resource::entity_tag(user))
        .header("Location", location(app, &user.subject))
}

/// An imported subject may hold a slash.
pub(super) fn location(app: &App, subject: &Subject) -> String {
    let id = utf8_percent_encode(subject.as_str(), NON_ALPHANUMERIC);
    address(app, &format!("Users/{id}"))
}

fn unknown() -> ScimError {
    ScimError::plain(404, "There is no such user.")
}

fn not_allowed() -> ScimRefusal {
    ScimRefusal::Scim(ScimError::plain(405, "The method is not allowed here."))
}
