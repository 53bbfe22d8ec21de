//! Hashes of passwords are sealed in the bucket, where commits stay for ever.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use harness::api_server::ApiServer;
use taco_control_plane::Error;
use taco_domain::Site;
use taco_domain::id::UserId;
use taco_domain::user::User;
use taco_ledger::{
    Bucket, Environment, Intent, Ledger, LedgerName, MasterKey, MasterKeys, ObjectBucket, Options, Peers, SharedRng,
    SystemClock, layout,
};

const PASSWORD: &str = "correct horse battery";

/// The site's ledger, as another server sees it.
async fn site_on(bucket: &Arc<dyn Bucket>) -> Ledger<Site> {
    let environment = Environment {
        bucket: Arc::clone(bucket),
        clock: Arc::new(SystemClock),
        rng: SharedRng::from_seed(9),
        server: "another".to_owned(),
        peers: Peers::none(),
    };
    Ledger::open(environment, LedgerName::site(), Options::default()).await.expect("the site's ledger")
}

async fn stored(bucket: &Arc<dyn Bucket>, user: UserId) -> String {
    let site = site_on(bucket).await.read().await.expect("a read");
    site.users.get(&user).and_then(|user| user.password.clone()).expect("a password")
}

/// A server with a user who has a password.
async fn given_password(bucket: &Arc<dyn Bucket>) -> (ApiServer, UserId) {
    let server = ApiServer::start_on(Arc::clone(bucket)).await;
    let (user, _) = server.given_user("bob").await;
    let control_plane = &server.control_plane;
    let link = control_plane.renew_password_link(&server.admin_caller().await, user).await.expect("a link");
    control_plane.set_password_by_link(link.secret.reveal(), PASSWORD.into()).await.expect("a password");
    (server, user)
}

/// Stores the hash as an older version did: as it is.
async fn store_plain(bucket: &Arc<dyn Bucket>, user: UserId) {
    let key = MasterKey::from_secret("a master key with more than enough characters").expect("long enough");
    let keys = MasterKeys::new(key, Vec::new(), SharedRng::from_seed(1));
    let sealed = STANDARD.decode(stored(bucket, user).await).expect("base64");
    let hash = keys.open_bytes(&format!("{user} password"), &sealed).expect("it opens");
    let hash = String::from_utf8(hash).expect("text");
    assert!(hash.starts_with("$argon2id$"), "{hash}");
    let intent = Intent { actor: "older".into(), action: "user.set-password", request: None };
    let older = site_on(bucket).await;
    let done = older.commit(intent, move |tx| {
        let before = tx.state().users.get(&user).cloned().ok_or(())?;
        tx.put(&User { password: Some(hash.clone()), ..before });
        Ok::<_, ()>(())
    });
    done.await.expect("a commit");
    assert!(stored(bucket, user).await.starts_with('$'));
}

#[tokio::test]
async fn a_hash_is_sealed_and_one_that_an_older_version_stored_is_sealed_at_the_next_login() {
    let bucket: Arc<dyn Bucket> = Arc::new(ObjectBucket::in_memory());
    let (server, user) = given_password(&bucket).await;
    let control_plane = &server.control_plane;
    for key in bucket.list(&layout::log(&LedgerName::site()), None).await.expect("a listing") {
        let commit = bucket.get(&key).await.expect("read").expect("a commit").bytes;
        assert!(!String::from_utf8_lossy(&commit).contains("$argon2"), "{key} has a hash that anyone can read");
    }
    let login = async |password: &str| control_plane.user_with_password("bob", password.to_owned(), None).await;
    assert_eq!(login(PASSWORD).await.expect("the right password").id, user);
    assert!(matches!(login("another password").await, Err(Error::Unauthorized(_))));

    store_plain(&bucket, user).await;
    assert!(matches!(login("another password").await, Err(Error::Unauthorized(_))));
    assert!(stored(&bucket, user).await.starts_with('$'), "a wrong password changes nothing");
    assert_eq!(login(PASSWORD).await.expect("the same password").id, user);
    assert!(!stored(&bucket, user).await.starts_with('$'));
    assert_eq!(login(PASSWORD).await.expect("the same password").id, user);
}

#[tokio::test]
async fn a_hash_that_an_older_version_stored_is_sealed_by_a_rewrap() {
    let bucket: Arc<dyn Bucket> = Arc::new(ObjectBucket::in_memory());
    let (server, user) = given_password(&bucket).await;
    store_plain(&bucket, user).await;
    for (renewed, left) in [(1, 0), (0, 1)] {
        let done = server.control_plane.rewrap_secrets().await.expect("a rewrap");
        assert_eq!((done.renewed, done.left, done.unreadable.len()), (renewed, left, 0));
        assert!(!stored(&bucket, user).await.starts_with('$'));
    }
    let login = server.control_plane.user_with_password("bob", PASSWORD.to_owned(), None).await;
    assert_eq!(login.expect("the same password").id, user);
}
