//! Whose certificates count: the system's authorities, and the operator's own.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

/// TLS 1.2 and 1.3 on aws-lc-rs, always verifying chain and name.
pub(super) fn tls_config(ca_file: Option<&Path>) -> Result<TlsConfig, String> {
    let mut authorities = rustls_native_certs::load_native_certs().certs;
    if let Some(path) = ca_file {
        authorities.extend(certificates(path)?);
    }
    if authorities.is_empty() {
        log::warn!("the system's store holds no CA certificate: requests of our own over https will fail");
    }
    let authorities: Vec<_> = authorities.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
    Ok(TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .root_certs(RootCerts::new_with_certs(&authorities))
        .build())
}

/// At least one, all of them readable: a file that is half understood would fail later and elsewhere.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unfit = |problem: &str| format!("GATEPOST_CA_FILE: {problem} {}", path.display());
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(|_| unfit("cannot read"))?;
    if certificates.is_empty() {
        return Err(unfit("there is no certificate in"));
    }
    let mut store = rustls::RootCertStore::empty();
    let acceptable = certificates.iter().all(|certificate| store.add(certificate.clone()).is_ok());
    if acceptable { Ok(certificates) } else { Err(unfit("there is something else than CA certificates in")) }
}
