//! A certificate for this machine, as an operator brings one along.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Files in PEM. The certificate has signed itself, so that it is also what clients have to trust.
#[derive(Clone, Debug)]
pub struct Certificate {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Certificate {
    pub fn make_in(directory: &Path) -> Self {
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let files = Self { certificate: directory.join("certificate.pem"), key: directory.join("key.pem") };
        fs::write(&files.certificate, made.cert.pem()).expect("it is written");
        fs::write(&files.key, made.signing_key.serialize_pem()).expect("it is written");
        files
    }

    /// Speaks TLS with it.
    pub fn acceptor(&self) -> TlsAcceptor {
        let chain = vec![CertificateDer::from_pem_file(&self.certificate).expect("a certificate")];
        let key = PrivateKeyDer::from_pem_file(&self.key).expect("a key");
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .expect("they belong together");
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }
}
