//! TLS towards the database: rustls on aws-lc-rs, always verifying chain and name.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::StoreError;

/// A connector that trusts the certificates in `root_certificates` (PEM), or the system's where there is no such file.
pub(super) fn connector(root_certificates: Option<&Path>) -> Result<MakeRustlsConnect, StoreError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|_| StoreError::Refused(String::from("TLS: no protocol version in common")))?
        .with_root_certificates(roots(root_certificates)?)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn roots(file: Option<&Path>) -> Result<RootCertStore, StoreError> {
    let mut store = RootCertStore::empty();
    match file {
        Some(path) => {
            let unreadable = || StoreError::Refused(format!("sslrootcert: cannot read {}", path.display()));
            let certificates = CertificateDer::pem_file_iter(path).map_err(|_| unreadable())?;
            store.add_parsable_certificates(certificates.filter_map(Result::ok));
            if store.is_empty() {
                return Err(StoreError::Refused(format!("sslrootcert: no certificate in {}", path.display())));
            }
        }
        None => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    Ok(store)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_root_file_is_an_error_not_an_empty_trust() {
        assert!(connector(Some(Path::new("/nonexistent/ca.pem"))).is_err());
        assert!(connector(Some(Path::new("/dev/null"))).is_err());
    }
}
