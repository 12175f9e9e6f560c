//! From stored rows to what the core works with. A row that `apply` would refuse today is
//! `Corrupt`, not served.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::BuildHasher;
use std::mem;
use std::sync::{Arc, MutexGuard};

use crate::keys::sealing::Sealer;
use crate::keys::signing::{SigningKey, verify};
use crate::registry::{RegisteredClient, Registry};
use gatepost_protocol::keys::jwt::{PublicKey, UnverifiedJws};
use gatepost_protocol::keys::key_schedule::KeyTimes;
use gatepost_protocol::registration::client_rules::ClientDefaults;
use gatepost_protocol::registration::walker::{self, Walker};
use gatepost_protocol::registration::{
    self, ObjectKind, catalogue, catalogue as registered, provider,
};
use gatepost_protocol::token::claims::built_in_catalogue;
use gatepost_protocol::token::client_secret::SecretDigest;
use gatepost_protocol::words::catalogue::Catalogue;
use gatepost_protocol::words::client::SigningAlgorithm;
use gatepost_protocol::words::identifiers::ClientId;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::secret::{SecretBytes, SecretText};
use gatepost_protocol::words::web_url;
use gatepost_store::catalogue::{CatalogueRow, CatalogueRows};
use gatepost_store::clients::{ClientRow, SecretRow};
use gatepost_store::mutex::Mutex;
use gatepost_store::signing_keys::SigningKeyRow;
use gatepost_store::{Result, StoreError};

pub fn client(
    row: ClientRow,
    defaults: &ClientDefaults,
    sealer: &Sealer,
) -> Result<RegisteredClient> {
    let client =
        registration::client::from_json(&walker::parse_own(&row.metadata), "client", defaults)
            .map_err(|problems| corrupt("client", row.client_id.as_str(), &problems))?;
    let ClientRow {
        epoch,
        installation_epoch,
        ..
    } = row;
    Ok(RegisteredClient {
        client,
        secrets: open_all("client", row.client_id.as_str(), &row.secrets, sealer),
        epoch,
        installation_epoch,
    })
}

/// The digests that open. One that does not counts as absent: no secret can match it.
fn open_all(kind: &str, name: &str, rows: &[SecretRow], sealer: &Sealer) -> Vec<SecretDigest> {
    let opened: Vec<SecretDigest> = rows.iter().filter_map(|row| open(row, sealer)).collect();
    let lost = rows.len() - opened.len();
    if lost > 0 {
        log::error!(
            "{kind} {name}: {lost} of its secrets were sealed under another master secret and do \
             not count: add that secret's line to the file, or give {name} a new one"
        );
    }
    opened
}

/// `None` where it was sealed under another master secret.
pub fn open(row: &SecretRow, sealer: &Sealer) -> Option<SecretDigest> {
    SecretDigest::decode(&sealer.open(row.sealed_digest.expose())?, row.expires_at)
}

/// What each resource proves itself with.
pub fn resource_secrets(
    rows: &CatalogueRows,
    sealer: &Sealer,
) -> BTreeMap<String, Vec<SecretDigest>> {
    let mut secrets = BTreeMap::new();
    for row in &rows.entries {
        if row.kind == ObjectKind::Resource {
            let opened = open_all("resource", &row.name, &row.secrets, sealer);
            secrets.insert(row.name.clone(), opened);
        }
    }
    secrets
}

/// Our client secret at each identity provider; `None` for one that does not open.
pub fn provider_secrets(
    rows: &CatalogueRows,
    sealer: &Sealer,
) -> BTreeMap<String, Option<SecretText>> {
    let mut secrets = BTreeMap::new();
    for row in &rows.entries {
        if row.kind != ObjectKind::IdentityProvider {
            continue;
        }
        let Some(sealed) = &row.sealed_secret else {
            continue;
        };
        let text = open_text(sealed, sealer);
        if text.is_none() {
            log::error!(
                "identity provider {0}: its client_secret was sealed under another master secret, \
                 so nobody can sign in there: add that secret's line to the file, or apply {0} \
                 with its client_secret",
                row.name
            );
        }
        secrets.insert(row.name.clone(), text);
    }
    secrets
}

fn open_text(sealed: &SecretBytes, sealer: &Sealer) -> Option<SecretText> {
    let bytes = sealer.open(sealed.expose())?;
    String::from_utf8(bytes).ok().map(SecretText::new)
}

/// The catalogue with the scopes that exist without being registered.
pub fn catalogue(rows: CatalogueRows) -> Result<Catalogue> {
    let mut catalogue = Catalogue {
        plain_pkce: rows.plain_pkce,
        metadata_documents: rows.metadata_documents,
        idle_identity_providers: rows.idle_identity_providers,
        ..built_in_catalogue()
    };
    for row in rows.entries {
        match row.kind {
            ObjectKind::IdentityScope => {
                put(&mut catalogue.scopes, row, registered::identity_scope)?
            }
            ObjectKind::ResourceScope => {
                put(&mut catalogue.scopes, row, registered::resource_scope)?
            }
            ObjectKind::Resource => put(&mut catalogue.resources, row, registered::resource)?,
            ObjectKind::Tenant => put(&mut catalogue.tenants, row, registered::tenant)?,
            ObjectKind::Role => put(&mut catalogue.roles, row, registered::role)?,
            ObjectKind::IdentityProvider => {
                put(&mut catalogue.identity_providers, row, provider::read)?
            }
            ObjectKind::ExtensionGrant => put(
                &mut catalogue.extension_grants,
                row,
                catalogue::read_extension_grant,
            )?,
            ObjectKind::AssertionIssuer => put(
                &mut catalogue.assertion_issuers,
                row,
                catalogue::read_assertion_issuer,
            )?,
            ObjectKind::Client | ObjectKind::User => {}
        }
    }
    Ok(catalogue)
}

fn put<T>(
    map: &mut BTreeMap<String, T>,
    row: CatalogueRow,
    read: impl FnOnce(&mut Walker<'_>) -> T,
) -> Result {
    let kind = row.kind.as_str();
    let object = registration::stored(&row.document, kind, read)
        .map_err(|problems| corrupt(kind, &row.name, &problems))?;
    map.insert(row.name, object);
    Ok(())
}

fn corrupt(what: &str, name: &str, problems: &[registration::DocumentProblem]) -> StoreError {
    let first = problems
        .first()
        .map(ToString::to_string)
        .unwrap_or_default();
    StoreError::Corrupt(format!("{what} {name}: {first}"))
}

impl Registry {
    /// Whether scripts of `origin` may read answers about this client.
    pub fn client_shares_with(&self, client_id: &str, origin: &str) -> bool {
        match self.client(&ClientId::new(client_id)) {
            Ok(Some(client)) => web_url::allowed_origin(&client.client, origin),
            Ok(None) | Err(_) => false,
        }
    }

    /// Whether scripts of `origin` may read answers about some client.
    pub fn some_client_shares_with(&self, origin: &str) -> bool {
        self.snapshot().origins.contains(origin)
    }
}

/// Texts of which only one thing is asked: whether one is among them. Their hashes, under a key
/// that nobody knows, take a fifth of the memory. Another text has one of these hashes once in 2^64
/// times the number of texts.
#[derive(Debug)]
pub struct TextSet {
    key: RandomState,
    hashes: HashSet<u64>,
}

impl TextSet {
    pub fn of(texts: &[&str]) -> TextSet {
        let key = RandomState::new();
        let hashes = texts.iter().map(|text| key.hash_one(text)).collect();
        TextSet { key, hashes }
    }

    pub fn contains(&self, text: &str) -> bool {
        self.hashes.contains(&self.key.hash_one(text))
    }
}

#[derive(Debug)]
struct HeldClient {
    version: i64,
    client: Option<Arc<RegisteredClient>>,
    bytes: usize,
    /// Since its last turn.
    was_asked_for: bool,
}

/// What the cache says of a client.
pub enum Cached {
    /// Nothing at this version: the database knows.
    Missing,
    /// What the registry has; `None` where no such client is registered.
    Held(Option<Arc<RegisteredClient>>),
}

#[derive(Debug, Default)]
struct Clients {
    by_name: HashMap<ClientId, HeldClient>,
    turns: VecDeque<ClientId>,
    bytes: usize,
}

/// Clients within so many bytes. Where those are full, the one goes that came first, unless it was
/// asked for since its last turn: then it stays for another.
#[derive(Debug)]
pub struct ClientCache(usize, Mutex<Clients>);

impl ClientCache {
    pub fn new(most: usize) -> ClientCache {
        ClientCache(most, Mutex::default())
    }

    pub fn find(&self, client_id: &ClientId, version: i64) -> Cached {
        match self.held().by_name.get_mut(client_id) {
            Some(held) if held.version == version => {
                held.was_asked_for = true;
                Cached::Held(held.client.clone())
            }
            _ => Cached::Missing,
        }
    }

    pub fn len(&self) -> usize {
        self.held().turns.len()
    }

    fn held(&self) -> MutexGuard<'_, Clients> {
        self.1.lock()
    }

    /// `length` is that of the registration as text. How many bytes a client takes was measured.
    pub fn keep(
        &self,
        client_id: &ClientId,
        version: i64,
        client: Option<Arc<RegisteredClient>>,
        length: usize,
    ) {
        let members = client.as_ref().map_or(0, |held| {
            held.client.claims.len() + held.client.scope.iter().count()
        });
        let bytes = 1_500 + length * 2 + members * 60;
        let mut held = self.held();
        held.bytes += bytes;
        let kept = HeldClient {
            version,
            client,
            bytes,
            was_asked_for: false,
        };
        match held.by_name.insert(client_id.clone(), kept) {
            Some(before) => held.bytes -= before.bytes,
            None => held.turns.push_back(client_id.clone()),
        }
        held.shrink_to(self.0);
    }
}

impl Clients {
    fn shrink_to(&mut self, most: usize) {
        while self.bytes > most {
            let Some(next) = self.turns.pop_front() else {
                break;
            };
            let held = self.by_name.get_mut(&next);
            if held.is_some_and(|held| mem::take(&mut held.was_asked_for)) {
                self.turns.push_back(next);
            } else {
                self.bytes -= self.by_name.remove(&next).map_or(0, |gone| gone.bytes);
            }
        }
    }
}

#[derive(Debug)]
struct Key {
    kid: String,
    public_key: PublicKey,
    /// Absent once retired.
    private: Option<SigningKey>,
    times: KeyTimes,
}

#[derive(Debug)]
pub struct KeyRing(Vec<Key>);

impl KeyRing {
    /// Unwraps the private keys. One that signs or is announced and does not unwrap is `Refused`:
    /// with it gone, starting would silently sign with something else.
    pub fn unwrap_all(rows: Vec<SigningKeyRow>, sealer: &Sealer, now: Instant) -> Result<KeyRing> {
        // One that can sign may have to, whatever its time.
        let mut keys = Vec::new();
        for row in rows {
            if row.wrapped_private.is_some() || now < row.times.forgotten_at {
                keys.push(unwrap(row, sealer)?);
            }
        }
        Ok(KeyRing(keys))
    }

    /// The key that signs with this algorithm now: the youngest active one. When its time is over
    /// and nothing has followed it goes on signing, because no signature at all would be worse; it
    /// stays published as long. Where the clock went back behind all of them, the earliest signs.
    pub fn signing_key(&self, algorithm: SigningAlgorithm, now: Instant) -> Option<&SigningKey> {
        self.current(algorithm, now)?.private.as_ref()
    }

    fn current(&self, algorithm: SigningAlgorithm, now: Instant) -> Option<&Key> {
        let able = |key: &&Key| key.private.is_some() && key.public_key.algorithm() == algorithm;
        let able = || self.0.iter().filter(able);
        let active = able()
            .filter(|key| key.times.activates_at <= now)
            .max_by_key(|key| key.times.activates_at);
        active.or_else(|| able().min_by_key(|key| key.times.activates_at))
    }

    /// The keys of the JWKS now, by `kid`. Some libraries take the first key of a set, whatever
    /// its name. So the default algorithm comes first, and within one the key that signs, then the
    /// announced, then the retired.
    pub fn published(&self, now: Instant) -> Vec<(&str, &PublicKey)> {
        let is_published = |key: &&Key| self.is_published(key, now);
        let mut published: Vec<&Key> = self.0.iter().filter(is_published).collect();
        published.sort_by_key(|key| {
            let algorithm = key.public_key.algorithm();
            let signs = self.current(algorithm, now);
            let is_another = signs.is_none_or(|signs| signs.kid != key.kid);
            let has_begun = key.times.activates_at <= now;
            (algorithm, is_another, has_begun)
        });
        let named = published.into_iter();
        named
            .map(|key| (key.kid.as_str(), &key.public_key))
            .collect()
    }

    fn is_published(&self, key: &Key, now: Instant) -> bool {
        let is_in_its_time = key.times.announced_at <= now && now < key.times.unpublished_at;
        let signs = self.current(key.public_key.algorithm(), now);
        is_in_its_time || signs.is_some_and(|signs| signs.kid == key.kid)
    }

    /// Published keys: `kid`, algorithm, when they begin or began to sign.
    pub fn ages(&self, now: Instant) -> Vec<(&str, SigningAlgorithm, Instant)> {
        let mut ages = Vec::new();
        for key in &self.0 {
            if self.is_published(key, now) {
                let algorithm = key.public_key.algorithm();
                ages.push((key.kid.as_str(), algorithm, key.times.activates_at));
            }
        }
        ages
    }

    pub fn algorithms(&self, now: Instant) -> Vec<SigningAlgorithm> {
        SigningAlgorithm::ALL
            .into_iter()
            .filter(|algorithm| self.signing_key(*algorithm, now).is_some())
            .collect()
    }

    /// Whether one of our keys made this signature. The key is chosen by `kid`, the algorithm by
    /// the key: what the header says of `alg` must merely agree (RFC 8725 §3.1). `typ` is for the
    /// caller, whose tokens differ by it.
    pub fn verifies(&self, jws: &UnverifiedJws) -> bool {
        let named = self
            .0
            .iter()
            .find(|key| jws.kid.as_deref() == Some(key.kid.as_str()));
        let Some(Key { public_key, .. }) = named else {
            return false;
        };
        public_key.algorithm() == jws.alg
            && verify(public_key, jws.signing_input.as_bytes(), &jws.signature)
    }
}

fn unwrap_private(
    row: &SigningKeyRow,
    wrapped: &SecretBytes,
    sealer: &Sealer,
) -> Result<SigningKey> {
    let Some(pkcs8) = sealer.open(wrapped.expose()) else {
        return Err(StoreError::Refused(format!(
            "signing key {} does not open under the master secret: it is not the one this database \
             was made with, or a line of it is missing (when it is lost for good: `gatepost key \
             reset`)",
            row.kid
        )));
    };
    let key = SigningKey::from_pkcs8(row.algorithm, &SecretBytes::new(pkcs8))
        .map_err(StoreError::Refused)?;
    Ok(key.called(&row.kid))
}

fn unwrap(row: SigningKeyRow, sealer: &Sealer) -> Result<Key> {
    let private = match &row.wrapped_private {
        Some(wrapped) => Some(unwrap_private(&row, wrapped, sealer)?),
        None => None,
    };
    let described = match &private {
        Some(key) => Some(key.public_key().clone()),
        None => PublicKey::from_jwk(&row.public_jwk),
    };
    let Some(public_key) = described else {
        let what = format!("public part of signing key {}", row.kid);
        return Err(StoreError::Corrupt(what));
    };
    Ok(Key {
        kid: row.kid,
        public_key,
        private,
        times: row.times,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_held(cache: &ClientCache, name: &ClientId, version: i64) -> bool {
        matches!(cache.find(name, version), Cached::Held(_))
    }

    #[test]
    fn an_entry_counts_only_at_its_version() {
        let (cache, name) = (ClientCache::new(1_500), ClientId::new("nobody"));
        assert!(matches!(cache.find(&name, 1), Cached::Missing));
        cache.keep(&name, 1, None, 0);
        assert!(matches!(cache.find(&name, 1), Cached::Held(None)));
        assert!(matches!(cache.find(&name, 2), Cached::Missing));
    }

    #[test]
    fn more_clients_than_fit_do_not_fill_the_memory_and_who_is_asked_for_stays() {
        let (cache, length) = (ClientCache::new(30_000), 750);
        let (busy, name) = (ClientId::new("busy"), |number: usize| {
            ClientId::new(number.to_string())
        });
        cache.keep(&busy, 1, None, 0);
        for number in 0..1_000 {
            assert!(is_held(&cache, &busy, 1), "{number}");
            cache.keep(&name(number), 1, None, 0);
            cache.keep(&name(number), 2, None, length);
            let held = cache.1.lock();
            assert!(
                held.bytes <= 30_000 && held.turns.len() == held.by_name.len(),
                "{number}"
            );
            assert_eq!(
                held.by_name.values().map(|held| held.bytes).sum::<usize>(),
                held.bytes
            );
        }
        assert!(
            !is_held(&cache, &name(985), 2) && is_held(&cache, &name(999), 2) && cache.len() == 10
        );
    }

    #[test]
    fn what_alone_is_more_than_fits_is_not_held() {
        let cache = ClientCache::new(1_500);
        cache.keep(&ClientId::new("large"), 1, None, 1);
        assert_eq!(cache.len(), 0);
    }

    #[test]
    fn a_set_of_texts_knows_its_own_and_no_other() {
        let texts = ["https://a.example", "https://b.example", ""];
        let set = TextSet::of(&texts);
        assert!(texts.iter().all(|text| set.contains(text)));
        assert!(!set.contains("https://a.example/") && !set.contains("https://c.example"));
        assert!(!TextSet::of(&[]).contains(""));
    }

    mod key_ring {
        use std::time::Duration;

        use super::super::*;
        use crate::keys::signing::generate;
        use gatepost_protocol::keys::key_schedule::KeySeasons;

        const DAY: Duration = Duration::from_secs(86_400);

        fn key(algorithm: SigningAlgorithm, activates_day: u64, retired: bool) -> Key {
            let private = SigningKey::from_pkcs8(algorithm, &generate(algorithm).unwrap()).unwrap();
            let seasons = KeySeasons {
                announce: DAY * 14,
                sign: DAY * 90,
                publish: DAY * 14,
                hint: DAY * 90,
            };
            let activates_at =
                Instant::from_seconds(0).plus(DAY * u32::try_from(activates_day).unwrap());
            Key {
                kid: private.kid().to_owned(),
                public_key: private.public_key().clone(),
                private: (!retired).then_some(private),
                times: seasons.active_from(activates_at.minus(DAY * 14), activates_at),
            }
        }

        fn at(day: u32) -> Instant {
            Instant::from_seconds(0).plus(DAY * day)
        }

        #[test]
        fn the_youngest_active_key_signs_and_its_neighbours_are_published() {
            let ring = KeyRing(vec![
                key(SigningAlgorithm::EdDsa, 100, false),
                key(SigningAlgorithm::EdDsa, 190, false),
            ]);
            let kid = |day| {
                ring.signing_key(SigningAlgorithm::EdDsa, at(day))
                    .map(|key| key.kid().to_owned())
            };
            assert_eq!(kid(99), Some(ring.0[0].kid.clone()), "the clock went back");
            assert_eq!(kid(189), Some(ring.0[0].kid.clone()));
            assert_eq!(kid(190), Some(ring.0[1].kid.clone()));
            let published: Vec<usize> = [85, 86, 175, 176, 203, 204]
                .map(|day| ring.published(at(day)).len())
                .to_vec();
            assert_eq!(published, [1, 1, 1, 2, 2, 1]);
        }

        #[test]
        fn the_default_algorithm_and_the_key_that_signs_are_published_first() {
            let days = [(60, true), (100, false), (160, false)];
            let algorithms = [
                SigningAlgorithm::EdDsa,
                SigningAlgorithm::Es256,
                SigningAlgorithm::Rs256,
            ];
            let keys = algorithms
                .into_iter()
                .flat_map(|algorithm| days.map(|(day, retired)| key(algorithm, day, retired)));
            let mut ring = KeyRing(keys.collect());
            let kid_of = |algorithm: usize, day: usize| ring.0[algorithm * 3 + day].kid.clone();
            let expected: Vec<String> = [2, 1, 0]
                .into_iter()
                .flat_map(|algorithm| [1, 2, 0].map(|day| kid_of(algorithm, day)))
                .collect();
            for _ in 0..2 {
                let published = ring.published(at(155));
                let kids: Vec<&str> = published.iter().map(|(kid, _)| *kid).collect();
                assert_eq!(kids, expected, "whatever order they are stored in");
                ring.0.reverse();
            }
        }

        #[test]
        fn a_key_that_nothing_follows_goes_on_signing_and_stays_published() {
            let ring = KeyRing(vec![key(SigningAlgorithm::Es256, 100, false)]);
            assert!(
                ring.signing_key(SigningAlgorithm::Es256, at(1_000))
                    .is_some()
            );
            assert_eq!(ring.published(at(1_000)).len(), 1);
            assert_eq!(ring.algorithms(at(1_000)), [SigningAlgorithm::Es256]);
        }

        #[test]
        fn a_retired_key_verifies_and_does_not_sign() {
            let signer = key(SigningAlgorithm::Es256, 100, false);
            let claims = serde_json::json!({});
            let input = gatepost_protocol::keys::jwt::signing_input(
                SigningAlgorithm::Es256,
                &signer.kid,
                "JWT",
                &claims,
            );
            let signature = signer
                .private
                .as_ref()
                .unwrap()
                .sign(input.as_bytes())
                .unwrap();
            let jws =
                UnverifiedJws::parse(&gatepost_protocol::keys::jwt::assemble(input, &signature))
                    .unwrap();
            let retired = KeyRing(vec![Key {
                private: None,
                ..signer
            }]);
            assert!(retired.verifies(&jws));
            assert!(
                retired
                    .signing_key(SigningAlgorithm::Es256, at(110))
                    .is_none()
            );
            let other = KeyRing(vec![key(SigningAlgorithm::Es256, 100, false)]);
            assert!(!other.verifies(&jws));
            let renamed = UnverifiedJws {
                kid: Some(other.0[0].kid.clone()),
                ..jws
            };
            assert!(!other.verifies(&renamed));
        }
    }
}
