//! Whom the agent trusts: the system's authorities (or those of `SSL_CERT_FILE`), and those of one more file.

use std::io;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

pub(crate) fn client_configuration(ca_file: Option<&Path>) -> io::Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(system());
    for certificate in ca_file.map(read).transpose()?.unwrap_or_default() {
        roots.add(certificate).map_err(io::Error::other)?;
    }
    let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
    let mut configuration = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    configuration.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(configuration))
}

/// The same authorities as one file. `SSL_CERT_FILE` replaces the system's, so an engine that is to trust one more
/// authority needs all of them in it.
pub(crate) fn bundle(ca_file: &Path) -> io::Result<String> {
    let mut bundle = String::new();
    for certificate in system().into_iter().chain(read(ca_file)?) {
        bundle.push_str("-----BEGIN CERTIFICATE-----\n");
        for line in STANDARD.encode(&certificate).as_bytes().chunks(64) {
            bundle.push_str(&String::from_utf8_lossy(line));
            bundle.push('\n');
        }
        bundle.push_str("-----END CERTIFICATE-----\n");
    }
    Ok(bundle)
}

fn system() -> Vec<CertificateDer<'static>> {
    rustls_native_certs::load_native_certs().certs
}

fn read(file: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let unreadable = |error| io::Error::other(format!("{} has no certificates in PEM: {error}", file.display()));
    let certificates: Vec<_> =
        CertificateDer::pem_file_iter(file).map_err(unreadable)?.collect::<Result<_, _>>().map_err(unreadable)?;
    match certificates.is_empty() {
        true => Err(io::Error::other(format!("{} has no certificates in PEM", file.display()))),
        false => Ok(certificates),
    }
}
