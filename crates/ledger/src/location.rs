//! From `TACO_BUCKET` to a bucket.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::prefix::PrefixStore;
use object_store::{ClientOptions, ObjectStore, RetryConfig};
use url::Url;

use crate::object_bucket::{ObjectBucket, REQUEST_TIMEOUT};

/// A bucket's address, and how to reach it. What is not given is taken from the cloud's usual places (its environment
/// variables, its metadata service).
#[derive(Clone, Default)]
pub struct Location {
    /// `file:///path`, `s3://bucket/prefix`, `gs://bucket/prefix` or `az://container/prefix`.
    pub url: String,
    pub s3_endpoint: Option<String>,
    pub s3_region: Option<String>,
    pub s3_access_key_id: Option<String>,
    pub s3_secret_access_key: Option<String>,
    /// A service account's key as JSON.
    pub gcs_service_account_key: Option<String>,
    pub azure_account: Option<String>,
    pub azure_access_key: Option<String>,
    /// For an emulator or a private cloud.
    pub azure_endpoint: Option<String>,
    /// The variables of the cloud's own tools, such as `AWS_REGION`. Not the process's: a server hides its own.
    pub variables: BTreeMap<String, String>,
}

/// A bucket's address or settings that cannot be used.
#[derive(thiserror::Error, Debug)]
pub enum LocationError {
    #[error(
        "{url:?} is not a bucket address: {why}. Allowed are file:///path, s3://bucket/prefix, gs://bucket/prefix and az://container/prefix"
    )]
    BadUrl { url: String, why: String },
    #[error("the directory {path} cannot be used as a bucket: {why}")]
    Directory { path: String, why: std::io::Error },
    #[error("{url} cannot be opened: {why}")]
    Settings { url: String, why: object_store::Error },
}

impl Location {
    /// A local directory.
    pub fn directory(path: impl Into<PathBuf>) -> Self {
        Self { url: format!("file://{}", path.into().display()), ..Self::default() }
    }

    /// Opens the bucket. A directory that does not exist is made; nothing else is read or written yet.
    pub fn open(&self) -> Result<ObjectBucket, LocationError> {
        let bad = |why: &str| LocationError::BadUrl { url: self.url.clone(), why: why.to_owned() };
        let url = Url::parse(&self.url).map_err(|error| bad(&error.to_string()))?;
        if url.scheme() == "file" {
            return open_directory(&url, &bad);
        }
        let name = url.host_str().filter(|name| !name.is_empty()).ok_or_else(|| bad("it names no bucket"))?;
        let build = |retry_policy| -> Result<Arc<dyn ObjectStore>, LocationError> {
            let store = match url.scheme() {
                "s3" => self.s3(name, retry_policy),
                "gs" => self.gcs(name, retry_policy),
                "az" => self.azure(name, retry_policy),
                other => return Err(bad(&format!("{other}:// is not known"))),
            };
            let store = store.map_err(|why| LocationError::Settings { url: self.url.clone(), why })?;
            let prefix = url.path().trim_matches('/');
            Ok(if prefix.is_empty() { store } else { Arc::new(PrefixStore::new(store, prefix)) })
        };
        Ok(ObjectBucket::new(build(RetryPolicy::None)?, build(RetryPolicy::Some)?))
    }

    /// Applies the cloud's variables, as far as the builder knows them.
    fn with_variables<B, K: FromStr>(&self, prefix: &str, builder: B, set: impl Fn(B, K, String) -> B) -> B {
        let known = |(name, value): (&String, &String)| {
            let key = name.starts_with(prefix).then(|| name.to_ascii_lowercase().parse().ok()).flatten()?;
            Some((key, value.clone()))
        };
        self.variables.iter().filter_map(known).fold(builder, |builder, (key, value)| set(builder, key, value))
    }

    fn s3(&self, name: &str, retry_policy: RetryPolicy) -> object_store::Result<Arc<dyn ObjectStore>> {
        let builder = AmazonS3Builder::new();
        let mut builder = self
            .with_variables("AWS_", builder, AmazonS3Builder::with_config)
            .with_bucket_name(name)
            .with_retry(retry_policy.retries())
            .with_client_options(retry_policy.client());
        if let Some(endpoint) = &self.s3_endpoint {
            builder = builder.with_endpoint(endpoint).with_allow_http(endpoint.starts_with("http://"));
        }
        if let Some(region) = &self.s3_region {
            builder = builder.with_region(region);
        }
        if let Some(id) = &self.s3_access_key_id {
            builder = builder.with_access_key_id(id);
        }
        if let Some(secret) = &self.s3_secret_access_key {
            builder = builder.with_secret_access_key(secret);
        }
        Ok(Arc::new(builder.build()?))
    }

    fn gcs(&self, name: &str, retry_policy: RetryPolicy) -> object_store::Result<Arc<dyn ObjectStore>> {
        let builder = GoogleCloudStorageBuilder::new();
        let mut builder = self
            .with_variables("GOOGLE_", builder, GoogleCloudStorageBuilder::with_config)
            .with_bucket_name(name)
            .with_retry(retry_policy.retries())
            // Only a key that names an address of its own, that of an emulator, leads to one without TLS.
            .with_client_options(retry_policy.client().with_allow_http(true));
        if let Some(key) = &self.gcs_service_account_key {
            builder = builder.with_service_account_key(key);
        }
        Ok(Arc::new(builder.build()?))
    }

    fn azure(&self, container: &str, retry_policy: RetryPolicy) -> object_store::Result<Arc<dyn ObjectStore>> {
        let builder = MicrosoftAzureBuilder::new();
        let mut builder = self
            .with_variables("AZURE_", builder, MicrosoftAzureBuilder::with_config)
            .with_container_name(container)
            .with_retry(retry_policy.retries())
            .with_client_options(retry_policy.client());
        if let Some(endpoint) = &self.azure_endpoint {
            builder = builder.with_endpoint(endpoint.clone()).with_allow_http(endpoint.starts_with("http://"));
        }
        if let Some(account) = &self.azure_account {
            builder = builder.with_account(account);
        }
        if let Some(key) = &self.azure_access_key {
            builder = builder.with_access_key(key);
        }
        Ok(Arc::new(builder.build()?))
    }
}

fn open_directory(url: &Url, bad: &dyn Fn(&str) -> LocationError) -> Result<ObjectBucket, LocationError> {
    let directory = url.to_file_path().map_err(|()| bad("it has to be an absolute path, with three slashes"))?;
    let refuse = |why| LocationError::Directory { path: directory.display().to_string(), why };
    std::fs::create_dir_all(&directory).map_err(refuse)?;
    restrict_to_owner(&directory);
    let store = LocalFileSystem::new_with_prefix(&directory)
        .map_err(|error| refuse(std::io::Error::other(error)))?
        .with_fsync(true);
    Ok(ObjectBucket::on_directory(Arc::new(store), directory))
}

/// Leaves the bucket to its owner. Nobody else reaches what lies below, whatever the modes there are; so this is enough for a
/// bucket that an older version made, too.
fn restrict_to_owner(directory: &Path) {
    let tighten = || {
        let mode = std::fs::metadata(directory)?.permissions().mode();
        if mode & 0o077 != 0 {
            std::fs::set_permissions(directory, Permissions::from_mode(mode & 0o700))?;
        }
        std::io::Result::Ok(())
    };
    if let Err(error) = tighten() {
        let directory = directory.display();
        tracing::warn!(event = "bucket_directory_open_to_others", %directory, %error, "other users of this machine may read the bucket: take their rights away");
    }
}

/// Retries of a client of the bucket; see [`ObjectBucket`].
#[derive(Clone, Copy)]
enum RetryPolicy {
    None,
    Some,
}

impl RetryPolicy {
    fn retries(self) -> RetryConfig {
        let max_retries = match self {
            Self::None => 0,
            Self::Some => 3,
        };
        RetryConfig { max_retries, retry_timeout: REQUEST_TIMEOUT, ..RetryConfig::default() }
    }

    fn client(self) -> ClientOptions {
        let options = ClientOptions::new().with_connect_timeout(Duration::from_secs(5)).with_user_agent(user_agent());
        match self {
            Self::None => options.with_timeout(REQUEST_TIMEOUT),
            Self::Some => options.with_timeout_disabled().with_read_timeout(Duration::from_secs(30)),
        }
    }
}

fn user_agent() -> object_store::HeaderValue {
    object_store::HeaderValue::from_static(concat!("taco/", env!("CARGO_PKG_VERSION")))
}
