//! TLS in the server itself: with a certificate that it is given, or on a laptop with one that it makes.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DnType, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, NameConstraints,
};
use taco_ledger::SharedRng;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use url::Url;

use crate::config::Settings;

#[derive(thiserror::Error, Debug)]
pub enum TlsError {
    #[error("tls_cert and tls_key belong together; {missing} is missing")]
    Half { missing: &'static str },
    #[error("tls_dev makes a certificate, so that tls_cert and tls_key have no place beside it")]
    TooMuch,
    #[error("tls_dev keeps its files beside a bucket that is a directory; for {bucket}, set tls_cert and tls_key")]
    NoPlace { bucket: String },
    #[error("{what} {} cannot be read: {why}", path.display())]
    Unreadable { what: &'static str, path: PathBuf, why: String },
    #[error("the certificate and the key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
    #[error("the certificate authority in {} cannot be used: {why}", directory.display())]
    Authority { directory: PathBuf, why: String },
}

pub(crate) struct Tls {
    pub(crate) acceptor: TlsAcceptor,
    /// Certificate authority that clients have to trust, if we made it.
    pub(crate) certificate_authority: Option<PathBuf>,
}

/// TLS according to the settings; `None` is plain http.
pub(crate) fn load(settings: &Settings, now: Timestamp, rng: &SharedRng) -> Result<Option<Tls>, TlsError> {
    match (&settings.tls_cert, &settings.tls_key) {
        (None, None) if !settings.tls_dev => Ok(None),
        (None, None) => {
            let bucket = settings.bucket.as_str();
            let directory = directory_beside(bucket).ok_or_else(|| TlsError::NoPlace { bucket: bucket.to_owned() })?;
            let refuse = |why: String| TlsError::Authority { directory: directory.clone(), why };
            let (chain, key) = for_this_machine(&directory, now, rng).map_err(refuse)?;
            Ok(Some(Tls { acceptor: acceptor(chain, key)?, certificate_authority: Some(directory.join(CERTIFICATE)) }))
        }
        _ if settings.tls_dev => Err(TlsError::TooMuch),
        (Some(_), None) => Err(TlsError::Half { missing: "tls_key" }),
        (None, Some(_)) => Err(TlsError::Half { missing: "tls_cert" }),
        (Some(certificate), Some(key)) => {
            let (chain, key) = read(certificate.as_path(), key.as_path())?;
            Ok(Some(Tls { acceptor: acceptor(chain, key)?, certificate_authority: None }))
        }
    }
}

type Chain = Vec<CertificateDer<'static>>;
type Key = PrivateKeyDer<'static>;

fn acceptor(chain: Chain, key: Key) -> Result<TlsAcceptor, TlsError> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn read(certificate: &Path, key: &Path) -> Result<(Chain, Key), TlsError> {
    let refuse = |what, path: &Path, why: String| TlsError::Unreadable { what, path: path.to_owned(), why };
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Chain, _>>);
    let chain = chain.map_err(|why| refuse("tls_cert", certificate, why.to_string()))?;
    if chain.is_empty() {
        return Err(refuse("tls_cert", certificate, "it holds no certificate".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(key).map_err(|why| refuse("tls_key", key, why.to_string()))?;
    Ok((chain, key))
}

const CERTIFICATE: &str = "ca.pem";
const KEY: &str = "ca.key";

/// `…/taco/bucket.tls` for `…/taco/bucket`; `None` for a bucket that is not a directory.
fn directory_beside(bucket: &str) -> Option<PathBuf> {
    let directory = Url::parse(bucket).ok().filter(|url| url.scheme() == "file")?.to_file_path().ok()?;
    let mut name = directory.file_name()?.to_owned();
    name.push(".tls");
    Some(directory.with_file_name(name))
}

/// The key of the authority that [`load`] makes for a laptop.
pub(crate) fn key_beside(bucket: &str) -> Option<PathBuf> {
    Some(directory_beside(bucket)?.join(KEY))
}

/// A certificate for this machine. The authority that signs it is made once, for people tell their programs to trust
/// it; the certificate itself is made at every start, so that it never is too old.
fn for_this_machine(directory: &Path, now: Timestamp, rng: &SharedRng) -> Result<(Chain, Key), String> {
    let kept = directory.join(KEY);
    if !kept.exists() {
        make_authority(directory, now, rng).map_err(|why| why.to_string())?;
    }
    let key = fs::read_to_string(&kept).map_err(|why| why.to_string())?;
    let authority = KeyPair::from_pem(&key).map_err(|why| why.to_string())?;
    let certificate = || {
        let key = KeyPair::generate()?;
        let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, "localhost");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        limit_to_days(&mut params, now, 390);
        let certificate = params.signed_by(&key, &Issuer::new(authority_params(now), authority))?;
        Ok((vec![certificate.der().clone()], Key::try_from(key.serialize_der()).map_err(str::to_owned)))
    };
    let (chain, key) = certificate().map_err(|why: rcgen::Error| why.to_string())?;
    Ok((chain, key?))
}

/// Parameters of the authority. Its name and its key make it; the dates are those of the day when it is made.
fn authority_params(now: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "taco on this machine");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    // A thief of the key can pretend to be this machine, and no other.
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees: vec![
            GeneralSubtree::DnsName("localhost".to_owned()),
            GeneralSubtree::IpAddress(CidrSubnet::from_v4_prefix([127, 0, 0, 1], 32)),
            GeneralSubtree::IpAddress(CidrSubnet::from_v6_prefix(std::net::Ipv6Addr::LOCALHOST.octets(), 128)),
        ],
        excluded_subtrees: Vec::new(),
    });
    limit_to_days(&mut params, now, 3650);
    params
}

/// The directory appears whole or not at all, and where two servers start at once the first one's stays.
fn make_authority(directory: &Path, now: Timestamp, rng: &SharedRng) -> io::Result<()> {
    let key = KeyPair::generate().map_err(io::Error::other)?;
    let certificate = authority_params(now).self_signed(&key).map_err(io::Error::other)?;
    let unfinished = directory.with_extension(format!("tls.{}", rng.unique()));
    fs::create_dir(&unfinished)?;
    let write = |name: &str, text: String, mode| -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(unfinished.join(name))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    let made = write(CERTIFICATE, certificate.pem(), 0o644)
        .and_then(|()| write(KEY, key.serialize_pem(), 0o600))
        .and_then(|()| fs::rename(&unfinished, directory));
    if made.is_err() {
        fs::remove_dir_all(&unfinished).ok();
    }
    if directory.join(KEY).exists() { Ok(()) } else { made }
}

/// Lets a certificate hold from yesterday, for clocks differ, and for so many days.
fn limit_to_days(params: &mut CertificateParams, now: Timestamp, days: i64) {
    let day = |days: i64| {
        let day = now.checked_add(SignedDuration::from_hours(24 * days)).unwrap_or(now).to_zoned(TimeZone::UTC);
        rcgen::date_time_ymd(day.year().into(), day.month().unsigned_abs(), day.day().unsigned_abs())
    };
    params.not_before = day(-1);
    params.not_after = day(days);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_is_made_once_and_its_key_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().expect("a directory");
        let directory = home.path().join("bucket.tls");
        let now = "2026-01-01T00:00:00Z".parse().expect("a moment");
        let rng = SharedRng::from_seed(1);
        let make = || for_this_machine(&directory, now, &rng).expect("a certificate");
        let (chain, key) = make();
        acceptor(chain, key).expect("it can be used");
        let first = fs::read(directory.join(CERTIFICATE)).expect("a certificate");
        make();
        assert_eq!(fs::read(directory.join(CERTIFICATE)).expect("a certificate"), first);
        let mode = fs::metadata(directory.join(KEY)).expect("a key").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(home.path()).expect("a directory").count(), 1, "nothing is left behind");
    }

    #[test]
    fn files_lie_beside_the_bucket() {
        assert_eq!(directory_beside("file:///srv/taco"), Some("/srv/taco.tls".into()));
        assert_eq!(directory_beside("s3://bucket/prefix"), None);
    }
}
