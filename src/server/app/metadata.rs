//! The metadata and the key set, which everybody fetches. Each is rendered once for each change of
//! the registry, or of the published keys, which also change with time.

use std::sync::{Arc, PoisonError};

use serde_json::Value;

use super::App;
use crate::config::LANGUAGES;
use crate::registry::Snapshot;
use gatepost_protocol::discovery::{Provider, document};
use gatepost_protocol::keys::jwt;
use gatepost_protocol::words::catalogue::Catalogue;

#[derive(Debug)]
pub struct Rendered {
    registry_version: i64,
    kids: Vec<String>,
    discovery: Arc<[u8]>,
    jwks: Arc<[u8]>,
}

impl App {
    pub fn discovery_document(&self) -> Arc<[u8]> {
        Arc::clone(&self.rendered().discovery)
    }

    pub fn jwks_document(&self) -> Arc<[u8]> {
        Arc::clone(&self.rendered().jwks)
    }

    fn rendered(&self) -> Arc<Rendered> {
        let snapshot = self.registry.snapshot();
        let keys = snapshot.keys.published(self.now());
        let kids = keys.iter().map(|(kid, _)| *kid);
        let held = self.rendered.read();
        let held = held.unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(held) = held
            && held.registry_version == snapshot.version
            && kids.clone().eq(&held.kids)
        {
            return held;
        }
        let rendered = Arc::new(Rendered {
            registry_version: snapshot.version,
            kids: kids.map(String::from).collect(),
            discovery: bytes(&self.discovery(&snapshot)),
            jwks: bytes(&jwt::document(keys)),
        });
        *self
            .rendered
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&rendered));
        rendered
    }

    fn discovery(&self, snapshot: &Snapshot) -> Value {
        let signing_algorithms = snapshot.keys.algorithms(self.now());
        document(&Provider {
            issuer: self.issuer(),
            catalogue: &snapshot.catalogue,
            takes_pushed_requests: self.config.pushed_requests,
            id_jag: self.config.id_jag,
            extension_grants: &extension_grants(self, &snapshot.catalogue),
            signing_algorithms: &signing_algorithms,
            ui_locales: &LANGUAGES,
        })
    }
}

fn bytes(document: &Value) -> Arc<[u8]> {
    document.to_string().into_bytes().into()
}

/// The grant types of this binary and of the operator.
fn extension_grants(app: &App, catalogue: &Catalogue) -> Vec<String> {
    let compiled_in = app
        .extensions
        .table
        .iter()
        .map(|grant| grant.name.to_owned());
    let registered = catalogue.extension_grants.keys().cloned();
    let mut names: Vec<String> = compiled_in.chain(registered).collect();
    names.sort_unstable();
    names.dedup();
    names
}
