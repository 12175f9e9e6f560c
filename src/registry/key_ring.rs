//! The signing keys at hand: which one signs, which ones are published, which ones verify.

use crate::keys::sealing::Sealer;
use crate::keys::signing::{SigningKey, verify};
use crate::protocol::keys::jwks::PublicKey;
use crate::protocol::keys::jwt::UnverifiedJws;
use crate::protocol::keys::key_schedule::KeyTimes;
use crate::protocol::words::client::SigningAlgorithm;
use crate::protocol::words::instant::Instant;
use crate::protocol::words::secret::SecretBytes;
use crate::store::StoreError;
use crate::store::signing_keys::SigningKeyRow;

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
    /// Unwraps the private keys. One that signs or is announced and does not unwrap is `Refused`: with it gone, starting
    /// would silently sign with something else.
    pub(super) fn unwrap_all(rows: Vec<SigningKeyRow>, sealer: &Sealer, now: Instant) -> Result<KeyRing, StoreError> {
        // One that can sign may have to, whatever its time.
        let live = rows.into_iter().filter(|row| row.wrapped_private.is_some() || now < row.times.forgotten_at);
        Ok(KeyRing(live.map(|row| unwrap(row, sealer)).collect::<Result<_, _>>()?))
    }

    /// The key that signs with this algorithm now: the youngest active one. When its time is over and nothing has
    /// followed it goes on signing, because no signature at all would be worse; it stays published as long. Where the clock went
    /// back behind all of them, the earliest signs.
    pub fn signing_key(&self, algorithm: SigningAlgorithm, now: Instant) -> Option<&SigningKey> {
        self.current(algorithm, now).and_then(|key| key.private.as_ref())
    }

    fn current(&self, algorithm: SigningAlgorithm, now: Instant) -> Option<&Key> {
        let able = |key: &&Key| key.private.is_some() && key.public_key.algorithm() == algorithm;
        let able = || self.0.iter().filter(able);
        let active = able().filter(|key| key.times.activates_at <= now).max_by_key(|key| key.times.activates_at);
        active.or_else(|| able().min_by_key(|key| key.times.activates_at))
    }

    /// The keys of the JWKS now, by `kid`: announced, signing, or recently retired.
    pub fn published(&self, now: Instant) -> Vec<(&str, &PublicKey)> {
        let signs =
            |key: &Key| self.current(key.public_key.algorithm(), now).is_some_and(|current| current.kid == key.kid);
        let is_published = |key: &&Key| signs(key) || (key.times.announced_at <= now && now < key.times.unpublished_at);
        self.0.iter().filter(is_published).map(|key| (key.kid.as_str(), &key.public_key)).collect()
    }

    /// Published keys: `kid`, algorithm, when they begin or began to sign.
    pub fn ages(&self, now: Instant) -> Vec<(&str, SigningAlgorithm, Instant)> {
        let published = self.published(now);
        let is_published = |key: &&Key| published.iter().any(|(kid, _)| *kid == key.kid);
        let keys = self.0.iter().filter(is_published);
        keys.map(|key| (key.kid.as_str(), key.public_key.algorithm(), key.times.activates_at)).collect()
    }

    pub fn algorithms(&self, now: Instant) -> Vec<SigningAlgorithm> {
        SigningAlgorithm::ALL.into_iter().filter(|algorithm| self.signing_key(*algorithm, now).is_some()).collect()
    }

    /// Whether one of our keys made this signature. The key is chosen by `kid`, the algorithm by the key: what the header
    /// says of `alg` must merely agree (RFC 8725 §3.1). `typ` is for the caller, whose tokens differ by it.
    pub fn verifies(&self, jws: &UnverifiedJws) -> bool {
        let key = self.0.iter().find(|key| jws.kid.as_deref() == Some(key.kid.as_str()));
        key.is_some_and(|key| {
            key.public_key.algorithm() == jws.alg
                && verify(&key.public_key, jws.signing_input.as_bytes(), &jws.signature)
        })
    }
}

fn unwrap(row: SigningKeyRow, sealer: &Sealer) -> Result<Key, StoreError> {
    let unfit = || {
        StoreError::Refused(format!(
            "signing key {} does not open under the master secret: it is not the one this database was made with, or a line \
             of it is missing (when it is lost for good: `gatepost key reset`)",
            row.kid
        ))
    };
    let open = |wrapped: &SecretBytes| {
        let pkcs8 = SecretBytes::new(sealer.open(wrapped.expose()).ok_or_else(unfit)?);
        SigningKey::from_pkcs8(row.algorithm, &pkcs8).map_err(StoreError::Refused)
    };
    let private = row.wrapped_private.as_ref().map(open).transpose()?;
    let described =
        private.as_ref().map(|key| key.public_key().clone()).or_else(|| PublicKey::from_jwk(&row.public_jwk));
    let public_key = described.ok_or_else(|| StoreError::Corrupt(format!("public part of signing key {}", row.kid)))?;
    Ok(Key { kid: row.kid, public_key, private, times: row.times })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::keys::signing::generate;
    use crate::protocol::keys::key_schedule::KeySeasons;

    const DAY: Duration = Duration::from_secs(86_400);

    fn key(algorithm: SigningAlgorithm, activates_day: u64, retired: bool) -> Key {
        let private = SigningKey::from_pkcs8(algorithm, &generate(algorithm).unwrap()).unwrap();
        let seasons = KeySeasons { announce: DAY * 14, sign: DAY * 90, publish: DAY * 14, hint: DAY * 90 };
        let activates_at = Instant::from_seconds(0).plus(DAY * u32::try_from(activates_day).unwrap());
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
        let ring = KeyRing(vec![key(SigningAlgorithm::EdDsa, 100, false), key(SigningAlgorithm::EdDsa, 190, false)]);
        let kid = |day| ring.signing_key(SigningAlgorithm::EdDsa, at(day)).map(|key| key.kid().to_owned());
        assert_eq!(kid(99), Some(ring.0[0].kid.clone()), "the clock went back");
        assert_eq!(kid(189), Some(ring.0[0].kid.clone()));
        assert_eq!(kid(190), Some(ring.0[1].kid.clone()));
        let published: Vec<usize> = [85, 86, 175, 176, 203, 204].map(|day| ring.published(at(day)).len()).to_vec();
        assert_eq!(published, [1, 1, 1, 2, 2, 1]);
    }

    #[test]
    fn a_key_that_nothing_follows_goes_on_signing_and_stays_published() {
        let ring = KeyRing(vec![key(SigningAlgorithm::Es256, 100, false)]);
        assert!(ring.signing_key(SigningAlgorithm::Es256, at(1_000)).is_some());
        assert_eq!(ring.published(at(1_000)).len(), 1);
        assert_eq!(ring.algorithms(at(1_000)), [SigningAlgorithm::Es256]);
    }

    #[test]
    fn a_retired_key_verifies_and_does_not_sign() {
        let signer = key(SigningAlgorithm::Es256, 100, false);
        let claims = serde_json::json!({});
        let input = crate::protocol::keys::jwt::signing_input(SigningAlgorithm::Es256, &signer.kid, "JWT", &claims);
        let signature = signer.private.as_ref().unwrap().sign(input.as_bytes()).unwrap();
        let jws = UnverifiedJws::parse(&crate::protocol::keys::jwt::assemble(&input, &signature)).unwrap();
        let retired = KeyRing(vec![Key { private: None, ..signer }]);
        assert!(retired.verifies(&jws));
        assert!(retired.signing_key(SigningAlgorithm::Es256, at(110)).is_none());
        let other = KeyRing(vec![key(SigningAlgorithm::Es256, 100, false)]);
        assert!(!other.verifies(&jws));
        let renamed = UnverifiedJws { kid: Some(other.0[0].kid.clone()), ..jws };
        assert!(!other.verifies(&renamed));
    }
}
