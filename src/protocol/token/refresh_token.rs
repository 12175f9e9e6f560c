//! The refresh token (RFC 6749 §6, RFC 9700 §4.14): a handle that names a grant and one generation
//! of it, and the verdict on an attempt to use it.
//!
//! Each use moves the grant on by one generation, unless the client's `refresh_token_usage` is
//! `reuse`. Only the statement that does so can tell whether a generation is current, since two
//! requests may come at once. There are two ways to it. The usual one, `MOVE_ON` in
//! `store/grants.rs`, does not read the grant first: [`within`] writes down everything that must
//! hold, and the statement compares the row with it. The long way reads the grant, has [`judge`]
//! say what holds, and then runs another statement, `REFRESH`. It is taken where the request names
//! a `scope` or a `resource`; where [`within`] would have too many names to write down; and where
//! `MOVE_ON` found no row that fits. Both ways must agree on which grants stand.
//!
//! A client with `refresh_token_without_offline_access` has `MOVE_ON_IN_SESSION` in the place of
//! `MOVE_ON`, which looks at the session as well. What is said of the one holds for the other.
//!
//! The usual way costs one round trip and one commit. The statement and [`judge`] may disagree in
//! two ways, and neither gives tokens that [`judge`] would refuse:
//!
//! - The statement finds no row that fits. Then it has written nothing. The long way finds the
//!   reason; or, if somebody changed the grant meanwhile, it refreshes the grant after all.
//! - The statement moves a grant on that [`judge`] refuses. So [`judge`] sees each row that comes
//!   back, with the generation that was presented, as if it had been read before; only its time of
//!   last use is already that of this use. If [`judge`] refuses, the token is spent and nothing is
//!   issued. That is the right trade: the client still has the window in which it may repeat the
//!   refresh.
//!
//! # What ends a refresh token
//!
//! Every event, under what in the code sees it. "Read" is the function that judges a grant that was
//! read. "Compared" is the part of the SQL that sees the same: of `MOVE_ON`, and of `REFRESH` where
//! both statements are named. `{stands}` is a piece of `store/pieces.sql`. An epoch is a value of
//! the user, the client, the consent or the installation: once it is another one, everything that
//! was given before has ended. A test of `what_ends_what` takes the events by both ways;
//! `refresh_both_ways` compares what they leave.
//!
//! What the registration, a lifetime in it, a role, the master secret or another issuer takes away
//! comes back when that is undone. So does a token from before the database was restored, once the
//! restored grant was refreshed often enough to reach its generation. Everything else has ended for
//! good.
//!
//! A refresh token with `offline_access` does not end with its session, nor when the person signs
//! out, nor when their account elsewhere is unlinked: `offline_access` means just that. One without
//! it, of a client with `refresh_token_without_offline_access`, ends with all three.
//!
//! Read: [`judge`], by the generation; `REFRESH` tells a repeated use by `moved_at`. Compared:
//! `generation`.
//! - It was used, and its successor is current. Within `refresh_token_retry_window` it still gets
//!   that successor, as long as nobody has used it. After that it is a replay, which revokes the
//!   grant. Where the client's `refresh_token_usage` is `reuse`, a token stays good when it is
//!   used. If that usage was another one before, such a use ends the window in which the token
//!   before it may be repeated.
//!
//! Read: `check_token`, by the generation. Compared: `generation`.
//! - The database was restored to before it was issued. Restored to before its grant, there is no
//!   row to judge, and the token is unknown.
//!
//! Read: `check_token`. Compared: `revoked_at`.
//! - Its grant was revoked: by `/connect/revocation` with a refresh token of any generation, by
//!   `gatepost grant revoke`, or by a replay.
//! - The code that it came from was sent again by its client, within ten minutes after it was
//!   issued. It does not matter whether that request was right, or had another `code_verifier`,
//!   `redirect_uri` or key, or was for a resource that it cannot get, or came after the
//!   registration had changed.
//!
//! Read: [`ends_at`]. Compared: [`Within`].
//! - The grant expired, `refresh_token_lifetime` after it was given, as that was then.
//! - It was not used for `refresh_token_idle_lifetime`, as that is today.
//!
//! Without `offline_access`. Read: [`ends_at`] and [`liveness::stands`], at introspection.
//! Compared: `{session goes on}`, in both statements.
//! - Its session ended: the person signed out, or anything else ended it, or it ran out.
//!
//! Without `offline_access`. Read: `check_token`. Compared: [`Within`].
//! - The client lost `refresh_token_without_offline_access`.
//!
//! Read: [`stands`] at introspection. The token endpoint looks at the grant type once it knows the
//! client, and answers `unauthorized_client`.
//! - The client lost the grant type `refresh_token`.
//!
//! Read: [`check_registration`]. Compared: [`Within`].
//! - A scope that was granted is no longer the client's, or no longer registered.
//! - The client's `minimum_acr` was raised above the sign-in.
//! - The person's tenant is no longer the client's, or no longer registered; or the client is for
//!   one tenant now, and the person signed in without one.
//!
//! Read: [`liveness::stands`], at introspection. Compared: `{stands}`, in both statements.
//! - The user got another epoch: a new password, however it was set; a first second factor, or one
//!   removed; a passkey by an operator's link, in the place of all; another tenant; disabled;
//!   `gatepost user revoke`, or the same by an administrator. Or the user was removed, or their
//!   end came, which may not have drawn a new epoch yet.
//! - The client got another epoch: disabled, `gatepost client revoke`. Or it was removed.
//! - The consent got another epoch: it was withdrawn, or given anew after it had lapsed.
//! - The installation got another epoch: `gatepost revoke --everything`.
//! - The user has no role that the client asks for: it was taken away, or `allowed_roles` changed.
//!
//! Read: [`consent_has_lapsed`], at introspection. Compared: `{stands}`, in both statements.
//! - A consent that the client needs lapsed: its lifetime was over.
//!
//! The tag of the token, before the grant is read:
//! - The line of the master secret was removed that the tag was made with.
//! - The issuer was renamed (`migrate --rename-issuer`): all keys are other ones.
//!
//! # What is refused, and ends nothing
//!
//! Read: `check_key`. Compared: [`Within`].
//! - A token that is bound to a key, sent by a public client without a proof of that key. With the
//!   proof it is as good as before. So it is for the current token, and for its predecessor within
//!   `refresh_token_retry_window`. After that a predecessor is a replay, whatever key comes along.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::audience::{Narrowed, narrow_granted};
use super::liveness::{self, LivenessFacts, SessionFacts, check_registration, consent_has_lapsed};
use super::token_request::RefreshTokenRequest;
use crate::token::grant::Grant;
use crate::words::acr_values::tenant_stands;
use crate::words::catalogue::Catalogue;
use crate::words::client::{Client, GrantType};
use crate::words::identifiers::{GrantId, KeyThumbprint, TenantName};
use crate::words::instant::Instant;
use crate::words::reason::{Reason, Result, TokenError, TokenErrorCode};
use crate::words::secret::SecretText;
use crate::words::sender::Sender;
use crate::words::session::User;
use crate::words::strength::Strength;

/// Secret scanners find refresh tokens by it.
pub const PREFIX: &str = "gpr_";

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RefreshHandle {
    pub grant: GrantId,
    /// The number of the token among all of the grant, from 0.
    pub generation: i32,
}

impl RefreshHandle {
    /// The bytes that the tag authenticates: 20 of the grant, 4 of the generation.
    pub fn encode(self) -> Vec<u8> {
        [
            &self.grant.day.0.to_be_bytes()[..],
            &self.grant.random,
            &self.generation.to_be_bytes(),
        ]
        .concat()
    }

    /// The token as text: the prefix, then handle and tag in base64url.
    pub fn to_text(self, tag: &[u8; 32]) -> SecretText {
        SecretText::new(format!(
            "{PREFIX}{}",
            URL_SAFE_NO_PAD.encode([&self.encode(), &tag[..]].concat())
        ))
    }

    /// Reads a token. Its handle must not be used before the tag was verified.
    pub fn parse(text: &str) -> Option<(RefreshHandle, [u8; 32])> {
        let bytes = URL_SAFE_NO_PAD.decode(text.strip_prefix(PREFIX)?).ok()?;
        let (rest, tag) = bytes.split_last_chunk()?;
        let (grant, generation) = rest.split_last_chunk()?;
        let handle = RefreshHandle {
            grant: GrantId::from_bytes(grant)?,
            generation: i32::from_be_bytes(*generation),
        };
        (handle.generation >= 0).then_some((handle, *tag))
    }
}

/// Whether the grant comes with a refresh token.
pub fn is_issued(grant: &Grant, client: &Client) -> bool {
    grant.brings_refresh_tokens(client) && client.allows_grant(&GrantType::RefreshToken)
}

/// When the grant can no longer be refreshed: when it expires, when it was not used for the idle
/// lifetime, or when the session ends that it stands on.
pub fn ends_at(grant: &Grant, client: &Client, session: Option<SessionFacts>) -> Instant {
    let unused = grant.last_used_at.plus(client.lifetimes.refresh_token_idle);
    let of_session = session.filter(|_| !grant.is_offline());
    let ends = of_session.map(|session| session.expires_at);
    ends.into_iter()
        .fold(unused.min(grant.expires_at), Instant::min)
}

#[must_use]
#[derive(Debug, PartialEq)]
pub enum RefreshVerdict {
    /// Move the grant on and issue tokens for this. The grant and its next refresh token keep the
    /// whole scope.
    Refresh(Narrowed),
    /// The token is older than the grant's generation: its answer was lost and the client tries
    /// again, or somebody replays it. The statement finds out which. Only after that does it matter
    /// whether the request asks for something it may have.
    OldToken(Result<Narrowed>),
    Refuse(TokenError),
}

/// A refresh token as it came.
#[derive(Clone, Copy)]
pub struct PresentedRefresh<'a> {
    pub handle: RefreshHandle,
    pub request: &'a RefreshTokenRequest,
}

pub fn judge(grant: &Grant, presented: PresentedRefresh<'_>, sender: Sender<'_>) -> RefreshVerdict {
    let PresentedRefresh { handle, request } = presented;
    let Sender {
        client,
        catalogue,
        issuer,
        key,
        now,
    } = sender;
    if let Err(reason) = check_token(grant, handle, client) {
        return RefreshVerdict::Refuse(TokenError::new(TokenErrorCode::InvalidGrant, reason));
    }
    let standing =
        check_key(grant, key, client).and_then(|()| check_standing(grant, client, catalogue, now));
    let standing = standing.map_err(|reason| TokenError::new(TokenErrorCode::InvalidGrant, reason));
    // A replay is not hidden by what the registration has lost since, by what time has ended, or by
    // the key: a thief may have bound the grant to one that the owner does not have.
    match standing.and_then(|()| narrowed(grant, request, catalogue, issuer)) {
        narrowed if handle.generation < grant.generation => RefreshVerdict::OldToken(narrowed),
        Ok(narrowed) => RefreshVerdict::Refresh(narrowed),
        Err(error) => RefreshVerdict::Refuse(error),
    }
}

/// What must hold for a grant to be refreshed, beside its token, when the request names no `scope`
/// and no `resource`. The statement compares the row with it, so that the grant need not be read
/// first. It must say the same as `check_standing`.
#[derive(Debug)]
pub struct Within<'a> {
    pub scopes: Vec<&'a str>,
    /// The tenants that the grant may be of. The empty name stands for no tenant.
    pub tenants: Vec<&'a str>,
    /// Whether it may be a grant without `offline_access`, which then needs its session.
    pub in_session: bool,
    pub expires_after: Instant,
    pub used_after: Instant,
    /// The `acr` that the grant must have; `None` for any.
    pub acrs: Option<Vec<&'static str>>,
    /// The key that the request proved to hold: a grant that is bound to one must be bound to it. A
    /// client that has become confidential since may come with another: then the grant is read.
    pub confirmation: Option<KeyThumbprint>,
}

/// The most scopes or tenants that are sent with a refresh. Where more are registered, the grant is
/// read first.
const MOST_NAMES: usize = 64;

/// What the statement has to compare. `None` where the grant must be read and judged first.
pub fn within<'a>(request: &RefreshTokenRequest, sender: Sender<'a>) -> Option<Within<'a>> {
    let Sender {
        client, catalogue, ..
    } = sender;
    let is_narrower = request.scope.is_some() || !request.resources.is_empty();
    if is_narrower
        || catalogue.tenants.len() > MOST_NAMES
        || client.scope.iter().count() > MOST_NAMES
    {
        return None;
    }
    Some(Within {
        scopes: client
            .scope
            .iter()
            .filter(|name| catalogue.kind(name).is_some())
            .collect(),
        tenants: standing_tenants(client, catalogue),
        in_session: client.refresh_token_without_offline_access,
        expires_after: sender.now,
        used_after: sender.now.minus(client.lifetimes.refresh_token_idle),
        acrs: taken_acrs(client),
        confirmation: sender.key,
    })
}

fn standing_tenants<'a>(client: &Client, catalogue: &'a Catalogue) -> Vec<&'a str> {
    let stands = |name: &&str| {
        let tenant = (!name.is_empty()).then(|| TenantName::new(*name));
        tenant_stands(tenant.as_ref(), client, catalogue)
    };
    let names = catalogue.tenants.keys().map(String::as_str).chain([""]);
    names.filter(stands).collect()
}

fn taken_acrs(client: &Client) -> Option<Vec<&'static str>> {
    if client.minimum_acr <= Strength::SignedIn {
        return None;
    }
    let all = Strength::ALL.map(Strength::as_str).into_iter();
    Some(all.filter(|acr| client.takes(acr)).collect())
}

/// Whether this token is the current one and could be used now. What the grant stands on, an access
/// token for all of it would stand on.
pub fn stands(
    grant: &Grant,
    handle: RefreshHandle,
    client: &Client,
    catalogue: &Catalogue,
    user: Option<&User>,
    facts: &LivenessFacts,
    now: Instant,
) -> bool {
    client.allows_grant(&GrantType::RefreshToken)
        && handle.generation == grant.generation
        && check_token(grant, handle, client).is_ok()
        && now < ends_at(grant, client, facts.session)
        && check_standing(grant, client, catalogue, now).is_ok()
        && !consent_has_lapsed(grant.issued_at, client, facts, now)
        && liveness::stands(&grant.as_access_token(), Some(client), user, facts, now)
}

fn check_token(grant: &Grant, handle: RefreshHandle, client: &Client) -> Result<(), Reason> {
    // A generation ahead of the row comes from before the database was restored.
    if grant.client_id != client.client_id
        || !grant.brings_refresh_tokens(client)
        || handle.generation > grant.generation
    {
        return Err(Reason::UnknownRefreshToken);
    }
    if grant.revoked_at.is_some() {
        Err(Reason::GrantRevoked)
    } else {
        Ok(())
    }
}

/// A mismatch ends nothing: somebody has the token, and not the key. A confidential client has
/// proved itself, and may come with another key each time (RFC 9449 §5), also where it was public
/// when the grant was bound.
fn check_key(grant: &Grant, key: Option<KeyThumbprint>, client: &Client) -> Result<(), Reason> {
    if !client.is_confidential() && grant.confirmation.is_some() && grant.confirmation != key {
        return Err(Reason::ProofKey);
    }
    Ok(())
}

fn check_standing(
    grant: &Grant,
    client: &Client,
    catalogue: &Catalogue,
    now: Instant,
) -> Result<(), Reason> {
    if now >= ends_at(grant, client, None) {
        return Err(Reason::RefreshTokenExpired);
    }
    check_registration(&grant.user, &grant.scope, client, catalogue)
}

/// The scope and audience that the request asks for, which must lie within the grant (RFC 6749 §6,
/// RFC 8707 §2.2).
fn narrowed(
    grant: &Grant,
    request: &RefreshTokenRequest,
    catalogue: &Catalogue,
    issuer: &str,
) -> Result<Narrowed> {
    let asked = request.scope.as_ref().unwrap_or(&grant.scope);
    if !asked.is_within(&grant.scope) {
        return Err(TokenError::new(
            TokenErrorCode::InvalidScope,
            Reason::ScopeBeyondGrant,
        ));
    }
    narrow_granted(
        asked,
        &request.resources,
        &grant.resources,
        catalogue,
        issuer,
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::words::client::ClientAuthenticationMethod;
    use crate::words::samples::{self, NOW, scope};

    const ORDERS: &str = "https://orders.example.com/";
    const HOUR: Duration = Duration::from_secs(3_600);

    fn grant() -> Grant {
        Grant {
            generation: 3,
            last_used_at: NOW.plus(HOUR),
            ..samples::given("openid offline_access orders.read stock")
        }
    }

    fn request(scope: Option<&str>, resources: &[&str]) -> RefreshTokenRequest {
        RefreshTokenRequest {
            refresh_token: SecretText::new("gpr_x"),
            scope: scope.map(samples::scope),
            resources: resources
                .iter()
                .map(|resource| resource.to_string())
                .collect(),
        }
    }

    fn presented(handle: RefreshHandle, request: &RefreshTokenRequest) -> PresentedRefresh<'_> {
        PresentedRefresh { handle, request }
    }

    fn verdict(
        grant: &Grant,
        generation: i32,
        asked: &RefreshTokenRequest,
        now: Instant,
    ) -> RefreshVerdict {
        let handle = RefreshHandle {
            grant: grant.id,
            generation,
        };
        let (client, catalogue) = (samples::client(), samples::catalogue());
        let sender = samples::sender(&client, &catalogue);
        judge(grant, presented(handle, asked), Sender { now, ..sender })
    }

    fn refused(grant: &Grant, generation: i32, now: Instant) -> Reason {
        match verdict(grant, generation, &request(None, &[]), now) {
            RefreshVerdict::Refuse(error) if error.code == TokenErrorCode::InvalidGrant => {
                error.reason
            }
            RefreshVerdict::Refuse(error) => panic!("{error:?}"),
            RefreshVerdict::Refresh(_) | RefreshVerdict::OldToken(_) => panic!("not refused"),
        }
    }

    #[test]
    fn the_current_token_refreshes_and_an_older_one_is_for_the_statement_to_tell() {
        let whole = Narrowed {
            scope: grant().scope,
            audience: vec![ORDERS.to_owned(), String::from("stock")],
        };
        let now = NOW.plus(HOUR);
        assert_eq!(
            verdict(&grant(), 3, &request(None, &[]), now),
            RefreshVerdict::Refresh(whole.clone())
        );
        for generation in [0, 1, 2] {
            assert_eq!(
                verdict(&grant(), generation, &request(None, &[]), now),
                RefreshVerdict::OldToken(Ok(whole.clone()))
            );
        }
    }

    #[test]
    fn a_bad_request_does_not_hide_a_replay() {
        let wider = request(Some("orders.write"), &[]);
        let error = TokenError::new(TokenErrorCode::InvalidScope, Reason::ScopeBeyondGrant);
        assert_eq!(
            verdict(&grant(), 2, &wider, NOW.plus(HOUR)),
            RefreshVerdict::OldToken(Err(error.clone()))
        );
        assert_eq!(
            verdict(&grant(), 3, &wider, NOW.plus(HOUR)),
            RefreshVerdict::Refuse(error)
        );
    }

    #[test]
    fn neither_a_narrowed_registration_nor_the_end_hides_a_replay() {
        let invalid = |reason| TokenError::new(TokenErrorCode::InvalidGrant, reason);
        let beyond = Grant {
            scope: scope("openid offline_access phone"),
            ..grant()
        };
        let gone = invalid(Reason::GrantNoLongerStands);
        let now = NOW.plus(HOUR);
        assert_eq!(
            verdict(&beyond, 2, &request(None, &[]), now),
            RefreshVerdict::OldToken(Err(gone.clone()))
        );
        assert_eq!(
            verdict(&beyond, 3, &request(None, &[]), now),
            RefreshVerdict::Refuse(gone)
        );
        let over = RefreshVerdict::OldToken(Err(invalid(Reason::RefreshTokenExpired)));
        assert_eq!(
            verdict(&grant(), 2, &request(None, &[]), grant().expires_at),
            over
        );
        let revoked = Grant {
            revoked_at: Some(NOW),
            ..grant()
        };
        let dead = RefreshVerdict::Refuse(invalid(Reason::GrantRevoked));
        assert_eq!(verdict(&revoked, 2, &request(None, &[]), now), dead);
    }

    #[test]
    fn a_generation_that_the_row_has_not_reached_is_refused() {
        assert_eq!(
            refused(&grant(), 4, NOW.plus(HOUR)),
            Reason::UnknownRefreshToken
        );
        assert_eq!(
            refused(&grant(), i32::MAX, NOW.plus(HOUR)),
            Reason::UnknownRefreshToken
        );
    }

    #[test]
    fn both_ends_end_it_to_the_microsecond() {
        let tick = Duration::from_micros(1);
        let idle = samples::client().lifetimes.refresh_token_idle;
        let idle_end = grant().last_used_at.plus(idle);
        assert!(matches!(
            verdict(&grant(), 3, &request(None, &[]), idle_end.minus(tick)),
            RefreshVerdict::Refresh(_)
        ));
        assert_eq!(refused(&grant(), 3, idle_end), Reason::RefreshTokenExpired);
        let used = Grant {
            last_used_at: grant().expires_at.minus(HOUR),
            ..grant()
        };
        let end = used.expires_at;
        assert!(matches!(
            verdict(&used, 3, &request(None, &[]), end.minus(tick)),
            RefreshVerdict::Refresh(_)
        ));
        assert_eq!(refused(&used, 3, end), Reason::RefreshTokenExpired);
        assert_eq!(
            (
                ends_at(&grant(), &samples::client(), None),
                ends_at(&used, &samples::client(), None)
            ),
            (idle_end, end)
        );
    }

    #[test]
    fn what_was_withdrawn_since_ends_it() {
        let now = NOW.plus(HOUR);
        let of_other = Grant {
            client_id: crate::words::identifiers::ClientId::new("other"),
            ..grant()
        };
        assert_eq!(refused(&of_other, 3, now), Reason::UnknownRefreshToken);
        assert_eq!(
            refused(
                &Grant {
                    scope: scope("openid"),
                    ..grant()
                },
                3,
                now
            ),
            Reason::UnknownRefreshToken
        );
        assert_eq!(
            refused(
                &Grant {
                    revoked_at: Some(NOW),
                    ..grant()
                },
                3,
                now
            ),
            Reason::GrantRevoked
        );
        assert_eq!(
            refused(
                &Grant {
                    scope: scope("openid offline_access phone"),
                    ..grant()
                },
                3,
                now
            ),
            Reason::GrantNoLongerStands
        );
        let mut client = samples::client();
        client.tenants = Some([crate::words::identifiers::TenantName::new("other")].into());
        let handle = RefreshHandle {
            grant: grant().id,
            generation: 3,
        };
        let catalogue = samples::catalogue();
        let gone = RefreshVerdict::Refuse(TokenError::new(
            TokenErrorCode::InvalidGrant,
            Reason::GrantNoLongerStands,
        ));
        let judged = |client: &Client, catalogue: &Catalogue| {
            let sender = samples::sender(client, catalogue);
            let asked = request(None, &[]);
            judge(
                &grant(),
                presented(handle, &asked),
                Sender { now, ..sender },
            )
        };
        assert_eq!(judged(&client, &catalogue), gone);
        let mut catalogue = samples::catalogue();
        catalogue.scopes.remove("stock");
        assert_eq!(judged(&samples::client(), &catalogue), gone);
    }

    /// A client whose sign-ins bring refresh tokens without `offline_access`.
    fn in_session() -> Client {
        Client {
            grant_types: [GrantType::RefreshToken].into(),
            refresh_token_without_offline_access: true,
            ..samples::client()
        }
    }

    #[test]
    fn a_refresh_token_is_issued_to_a_client_that_may_refresh_offline_or_in_a_session() {
        let refreshing = Client {
            refresh_token_without_offline_access: false,
            ..in_session()
        };
        let online = samples::given("openid");
        let mut without_session = online.clone();
        without_session.user.sid = None;
        assert!(is_issued(&grant(), &refreshing));
        assert!(is_issued(&grant(), &in_session()));
        assert!(!is_issued(&grant(), &samples::client()));
        assert!(!is_issued(&online, &refreshing));
        assert!(is_issued(&online, &in_session()));
        assert!(!is_issued(&without_session, &in_session()));
    }

    #[test]
    fn a_refresh_token_of_a_session_ends_with_it_and_one_with_offline_access_does_not() {
        let client = in_session();
        let hours = |hours: u32| NOW.plus(HOUR * hours);
        let given = |names: &str, session_ends_at: Instant| {
            let given = crate::token::grant::Given {
                user: samples::sign_in(),
                scope: scope(names),
                epochs: samples::EPOCHS,
                session_ends_at: Some(session_ends_at),
            };
            Grant::given([9; 16], &client, given, NOW, Duration::ZERO)
        };
        let [of_access_tokens, of_refresh_tokens] = [
            client.lifetimes.access_token,
            client.lifetimes.refresh_token,
        ]
        .map(|l| NOW.plus(l));
        for (names, session_ends_at, expires_at) in [
            ("openid", hours(10), hours(10)),
            // The access token of the code lives as long as any.
            ("openid", NOW, of_access_tokens),
            ("openid", hours(9_999), of_refresh_tokens),
            ("offline_access", hours(10), of_refresh_tokens),
        ] {
            let grant = given(names, session_ends_at);
            assert_eq!(grant.expires_at, expires_at, "{names} {session_ends_at:?}");
        }
        let session = |expires_at| {
            Some(SessionFacts {
                ended: false,
                expires_at,
            })
        };
        let online = given("openid", hours(10));
        assert_eq!(ends_at(&online, &client, session(hours(2))), hours(2));
        assert_eq!(ends_at(&online, &client, session(hours(20))), hours(10));
        let offline = given("offline_access", hours(10));
        let unbound = ends_at(&offline, &client, None);
        assert_eq!(ends_at(&offline, &client, session(hours(2))), unbound);
    }

    /// The statement's comparison, as `REFRESH` of `store/grants.rs` makes it.
    fn is_within(grant: &Grant, within: &Within<'_>) -> bool {
        let tenant = grant.user.tenant.as_ref().map_or("", TenantName::as_str);
        let acr = grant.user.acr.as_str();
        grant.scope.iter().all(|name| within.scopes.contains(&name))
            && within.tenants.contains(&tenant)
            && grant.expires_at > within.expires_after
            && grant.last_used_at > within.used_after
            && within.acrs.as_ref().is_none_or(|acrs| acrs.contains(&acr))
    }

    #[test]
    fn the_statement_is_told_the_same_as_the_judge_says() {
        let now = NOW.plus(HOUR);
        let of_tenant = |tenant: Option<&str>, acr: &str, names: &str| {
            let mut grant = samples::given(names);
            grant.last_used_at = now;
            grant.user.tenant = tenant.map(TenantName::new);
            grant.user.acr = acr.to_owned();
            grant
        };
        let mut grants = Vec::new();
        for tenant in [None, Some("acme"), Some("other")] {
            for acr in ["0", "1", "2", "3"] {
                for names in [
                    "openid offline_access",
                    "offline_access phone",
                    "stock gone",
                ] {
                    grants.push(of_tenant(tenant, acr, names));
                }
            }
        }
        for tick in [0, 1] {
            let mut expiring = of_tenant(None, "1", "offline_access");
            expiring.expires_at = now.plus(Duration::from_micros(tick));
            let mut idle = of_tenant(None, "1", "offline_access");
            idle.last_used_at = now.minus(samples::client().lifetimes.refresh_token_idle);
            idle.last_used_at = idle.last_used_at.plus(Duration::from_micros(tick));
            grants.extend([expiring, idle]);
        }
        let mut catalogue = samples::catalogue();
        catalogue.scopes.remove("profile");
        let of_acme = Some([TenantName::new("acme")].into());
        for (tenants, minimum_acr) in [
            (None, Strength::SignedIn),
            (of_acme, Strength::TwoFactors),
            (None, Strength::PhishingResistant),
        ] {
            let client = Client {
                tenants,
                minimum_acr,
                ..samples::client()
            };
            let asked = request(None, &[]);
            let sender = samples::sender(&client, &catalogue);
            let within = within(&asked, Sender { now, ..sender }).unwrap();
            for grant in &grants {
                assert_eq!(
                    is_within(grant, &within),
                    check_standing(grant, &client, &catalogue, now).is_ok(),
                    "{grant:?} {within:?}"
                );
            }
        }
    }

    #[test]
    fn what_the_statement_cannot_compare_is_judged_from_the_row() {
        let now = NOW.plus(HOUR);
        let is_left = |asked: RefreshTokenRequest, client: &Client, catalogue: &Catalogue| {
            let sender = samples::sender(client, catalogue);
            within(&asked, Sender { now, ..sender }).is_none()
        };
        let (client, catalogue) = (samples::client(), samples::catalogue());
        assert!(is_left(request(Some("openid"), &[]), &client, &catalogue));
        assert!(is_left(request(None, &[ORDERS]), &client, &catalogue));
        for (most, left) in [(MOST_NAMES, false), (MOST_NAMES + 1, true)] {
            let names: Vec<String> = (0..most).map(|number| format!("s{number}")).collect();
            let broad = Client {
                scope: names.iter().map(String::as_str).collect(),
                ..samples::client()
            };
            assert_eq!(is_left(request(None, &[]), &broad, &catalogue), left);
            let mut crowded = samples::catalogue();
            let acme = crowded.tenants.remove("acme").unwrap();
            for name in names {
                crowded.tenants.insert(name, acme.clone());
            }
            assert_eq!(is_left(request(None, &[]), &client, &crowded), left);
        }
    }

    #[test]
    fn a_token_stands_while_it_is_the_current_one_and_all_beneath_it_does() {
        use crate::token::liveness::GrantFacts;
        use crate::words::samples::EPOCHS;

        let refreshing = Client {
            grant_types: [GrantType::RefreshToken].into(),
            require_consent: Some(true),
            ..samples::client()
        };
        let facts = LivenessFacts {
            token_revoked: false,
            grant: Some(GrantFacts {
                revoked: false,
                offline: true,
                expires_at: grant().expires_at,
                epochs: EPOCHS,
            }),
            session: None,
            client_enabled: true,
            epochs: EPOCHS,
            consent_expires_at: None,
        };
        let now = NOW.plus(HOUR);
        let is_good = |grant: &Grant, generation, client: &Client, facts: &LivenessFacts| {
            let handle = RefreshHandle {
                grant: grant.id,
                generation,
            };
            let alice = samples::alice();
            stands(
                grant,
                handle,
                client,
                &samples::catalogue(),
                Some(&alice),
                facts,
                now,
            )
        };
        assert!(is_good(&grant(), 3, &refreshing, &facts));
        assert!(!is_good(&grant(), 2, &refreshing, &facts));
        assert!(!is_good(&grant(), 4, &refreshing, &facts));
        assert!(!is_good(&grant(), 3, &samples::client(), &facts));
        let revoked = Grant {
            revoked_at: Some(NOW),
            ..grant()
        };
        assert!(!is_good(&revoked, 3, &refreshing, &facts));
        let beyond = Grant {
            scope: scope("offline_access phone"),
            ..grant()
        };
        assert!(!is_good(&beyond, 3, &refreshing, &facts));
        let lapsed = LivenessFacts {
            consent_expires_at: Some(now),
            ..facts.clone()
        };
        assert!(!is_good(&grant(), 3, &refreshing, &lapsed));
        let disabled = LivenessFacts {
            client_enabled: false,
            ..facts
        };
        assert!(!is_good(&grant(), 3, &refreshing, &disabled));
    }

    /// The verdict on a token of a grant that is bound to that key, or to none.
    fn verdict_with_key(
        client: &Client,
        bound_to: Option<KeyThumbprint>,
        generation: i32,
        key: Option<KeyThumbprint>,
    ) -> RefreshVerdict {
        let grant = Grant {
            confirmation: bound_to,
            ..grant()
        };
        let asked = request(None, &[]);
        let handle = RefreshHandle {
            grant: grant.id,
            generation,
        };
        let catalogue = samples::catalogue();
        let sender = Sender {
            key,
            now: NOW.plus(HOUR),
            ..samples::sender(client, &catalogue)
        };
        judge(&grant, presented(handle, &asked), sender)
    }

    #[test]
    fn a_public_client_needs_the_key_and_a_wrong_one_does_not_hide_a_replay() {
        let [own, other] = [1, 2].map(|byte| KeyThumbprint([byte; 32]));
        let public = Client {
            authentication: ClientAuthenticationMethod::None,
            ..samples::client()
        };
        for (bound_to, key, is_good) in [
            (None, None, true),
            (None, Some(other), true),
            (Some(own), Some(own), true),
            (Some(own), Some(other), false),
            (Some(own), None, false),
        ] {
            let expected = match verdict_with_key(&public, bound_to, 3, key) {
                RefreshVerdict::Refresh(narrowed) => Ok(narrowed),
                RefreshVerdict::Refuse(error) => Err(error),
                RefreshVerdict::OldToken(judged) => panic!("{judged:?}"),
            };
            let reason = expected.as_ref().err().map(|error| error.reason);
            let wrong = (!is_good).then_some(Reason::ProofKey);
            assert_eq!(reason, wrong, "{bound_to:?} {key:?}");
            // Whoever sends an older one, with whatever key: the statement is to tell.
            for generation in [0, 1, 2] {
                let verdict = verdict_with_key(&public, bound_to, generation, key);
                assert_eq!(
                    verdict,
                    RefreshVerdict::OldToken(expected.clone()),
                    "{bound_to:?} {key:?} {generation}"
                );
            }
        }
    }

    #[test]
    fn a_client_that_has_become_confidential_may_come_with_any_key() {
        let [own, other] = [1, 2].map(|byte| KeyThumbprint([byte; 32]));
        let confidential = samples::client();
        for key in [Some(own), Some(other), None] {
            let verdict = verdict_with_key(&confidential, Some(own), 3, key);
            assert!(
                matches!(verdict, RefreshVerdict::Refresh(_)),
                "{key:?}: {verdict:?}"
            );
        }
    }

    #[test]
    fn another_form_of_a_token_is_no_token() {
        let handle = RefreshHandle {
            grant: samples::grant(),
            generation: 1,
        };
        let token = handle.to_text(&[1; 32]).expose().to_owned();
        let negative = RefreshHandle {
            generation: -1,
            ..handle
        }
        .to_text(&[1; 32])
        .expose()
        .to_owned();
        // 56 bytes leave two bits of the last character unused.
        let loose = format!("{}{}", &token[..token.len() - 1], 'F');
        for text in [
            "",
            "gpr_",
            &token[..token.len() - 1],
            &format!("{token}A"),
            &format!("{token}="),
            &format!(" {token}"),
            &token.replace("gpr_", "gpa_"),
            &token.replace("gpr_", "GPR_"),
            &negative,
            &loose,
        ] {
            assert_eq!(RefreshHandle::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(day in any::<i32>(), random in any::<[u8; 16]>(), generation in 0..=i32::MAX, tag in any::<[u8; 32]>()) {
            let grant = GrantId { day: crate::words::instant::Day(day), random };
            let handle = RefreshHandle { grant, generation };
            prop_assert_eq!(RefreshHandle::parse(handle.to_text(&tag).expose()), Some((handle, tag)));
        }

        #[test]
        fn no_text_makes_parsing_panic(text in "(gpr_)?[A-Za-z0-9_-]{0,90}") {
            let _ = RefreshHandle::parse(&text);
        }
    }
}
