use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};
use taco_control_plane::{
    Caller, Error, FirstStart, NewToken, NotificationSettings, OrganizationView, Privileged, RequestInfo, Settings,
};
use taco_domain::organization::OrganizationPatch;
use taco_domain::user::User;
use taco_ledger::{Bucket, Clock, Environment, MasterKey, MasterKeys, ObjectBucket, Options, Peers, SharedRng};

pub(crate) const SITE_TOKEN: &str = "a text that the operator chose";

/// The site's master key.
pub(crate) const SECRET: &str = "a master key with more than enough characters";

/// A clock that stands still until it is moved.
#[derive(Debug)]
pub(crate) struct TestClock(Mutex<Timestamp>);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().expect("not poisoned")
    }
}

/// A site on a bucket in memory.
pub(crate) struct TestSite {
    pub(crate) control_plane: Privileged,
    bucket: Arc<dyn Bucket>,
    clock: Arc<TestClock>,
}

impl TestSite {
    /// With its first admin.
    pub(crate) async fn start() -> Self {
        let clock = TestClock(Mutex::new("2026-01-01T12:00:00Z".parse().expect("a timestamp")));
        let (bucket, clock) = (Arc::new(ObjectBucket::in_memory()), Arc::new(clock));
        let control_plane = open(bucket.clone(), clock.clone(), 1, &[SECRET]).await.expect("a control plane");
        let site = Self { control_plane, bucket, clock };
        site.control_plane.first_start().await.expect("a first start");
        site
    }

    /// Another server on the same bucket.
    pub(crate) async fn another_server(&self) -> Privileged {
        self.server_with_secrets(&[SECRET]).await.expect("a control plane")
    }

    /// Another server that was given these master keys, the current one first.
    pub(crate) async fn server_with_secrets(&self, secrets: &[&str]) -> Result<Privileged, Error> {
        open(self.bucket.clone(), self.clock.clone(), 2, secrets).await
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn pass(&self, time: SignedDuration) {
        let mut now = self.clock.0.lock().expect("not poisoned");
        *now = now.checked_add(time).expect("a timestamp");
    }

    pub(crate) async fn admin(&self) -> Caller {
        self.with_token(SITE_TOKEN).await.expect("the site's token")
    }

    pub(crate) async fn anonymous(&self) -> Caller {
        self.control_plane.anonymous(RequestInfo::default()).await.expect("the site")
    }

    pub(crate) async fn with_token(&self, text: &str) -> Result<Caller, Error> {
        let request = RequestInfo { id: Some("request-1".into()), ..RequestInfo::default() };
        self.control_plane.authenticate(text, request).await
    }

    /// A user who came with a token of their own.
    pub(crate) async fn given_user(&self, name: &str) -> (User, String) {
        let admin = self.admin().await;
        let email = format!("{name}@acme.test");
        let (user, _) = self.control_plane.create_user(&admin, name, &email, false).await.expect("a user");
        let token = self.control_plane.create_user_token(&self.admin().await, user.id, NewToken::default()).await;
        (user, token.expect("a token").text.reveal())
    }

    pub(crate) async fn given_organization(&self, token: &str, name: &str) -> OrganizationView {
        let caller = self.with_token(token).await.expect("a caller");
        let patch = named(name);
        self.control_plane.create_organization(&caller, &patch).await.expect("an organization")
    }

    /// The text of a link to set the first admin's password.
    pub(crate) async fn first_link(&self) -> String {
        match self.control_plane.first_start().await.expect("a start") {
            FirstStart::SetPassword(link) => link.secret.reveal().to_owned(),
            FirstStart::Ready => panic!("the password is set already"),
        }
    }
}

fn master_key(secret: &str) -> MasterKey {
    MasterKey::from_secret(secret).expect("a long secret")
}

async fn open(
    bucket: Arc<dyn Bucket>,
    clock: Arc<TestClock>,
    seed: u64,
    secrets: &[&str],
) -> Result<Privileged, Error> {
    let environment = Environment {
        bucket,
        clock,
        rng: SharedRng::from_seed(seed),
        server: format!("server-{seed}"),
        peers: Peers::none(),
    };
    let older = secrets[1..].iter().map(|secret| master_key(secret)).collect();
    let settings = Settings {
        master_keys: Arc::new(MasterKeys::new(master_key(secrets[0]), older, SharedRng::from_seed(seed))),
        site_token: Some(SITE_TOKEN.to_owned()),
        ledger: Options::default(),
        timeouts: Default::default(),
        limits: Default::default(),
        history: Default::default(),
        hosts: Vec::new(),
        notifications: NotificationSettings::default(),
        opa: None,
    };
    Privileged::open(environment, settings).await
}

/// The attributes of a new organization.
pub(crate) fn named(name: &str) -> OrganizationPatch {
    patch(&format!(r#"{{"name":"{name}","email":"{name}@acme.test"}}"#))
}

pub(crate) fn patch(json: &str) -> OrganizationPatch {
    serde_json::from_str(json).expect("attributes")
}

/// Enough of an error to tell which it is.
pub(crate) fn kind<T>(result: Result<T, Error>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(Error::NotFound(_)) => "not found",
        Err(Error::Invalid { .. }) => "invalid",
        Err(Error::Conflict(_)) => "conflict",
        Err(Error::Denied(_)) => "denied",
        Err(Error::Unauthorized(_)) => "unauthorized",
        Err(Error::TooLarge { .. }) => "too large",
        Err(Error::TooManyRequests { .. }) => "too many requests",
        Err(Error::Unavailable(_)) => "unavailable",
        Err(Error::Corrupt(_)) => "corrupt",
        Err(Error::Sealed(_)) => "sealed",
    }
}
