use taco_control_plane::{PageRequest, SshKeyPatch};

use crate::harness::{SITE_TOKEN, TestSite, kind};

fn attributes(name: &str, value: Option<&str>) -> SshKeyPatch {
    SshKeyPatch { name: Some(name.into()), value: value.map(Into::into) }
}

#[tokio::test]
async fn a_key_is_made_renamed_and_deleted() {
    let site = TestSite::start().await;
    site.given_organization(SITE_TOKEN, "acme").await;
    let admin = site.admin().await;
    let control_plane = &site.control_plane;
    let create = |name: &'static str, value| control_plane.create_ssh_key(&admin, "acme", attributes(name, value));
    let key = create("deploy", Some("s3cr3t")).await.expect("a key");
    assert!(!key.sealed_value.contains("s3cr3t"));
    assert_eq!(kind(create("Deploy", Some("other")).await), "invalid");
    assert_eq!(kind(create("other", None).await), "invalid");
    assert_eq!(kind(create("", Some("value")).await), "invalid");

    let renamed = control_plane.update_ssh_key(&admin, key.id, attributes("release", None)).await.expect("renamed");
    assert_eq!((renamed.name.as_str(), &renamed.sealed_value), ("release", &key.sealed_value));
    assert_eq!(control_plane.ssh_key(&admin, key.id).await.expect("a key"), renamed);
    let listed = control_plane.ssh_keys(&admin, "acme", PageRequest::default()).await.expect("a list");
    assert_eq!((listed.items, listed.total), (vec![renamed], 1));

    control_plane.delete_ssh_key(&admin, key.id).await.expect("deleted");
    assert_eq!(kind(control_plane.ssh_key(&admin, key.id).await), "not found");
    assert_eq!(kind(control_plane.delete_ssh_key(&admin, key.id).await), "not found");
}

#[tokio::test]
async fn strangers_do_not_learn_of_a_key() {
    let site = TestSite::start().await;
    let (_, token) = site.given_user("jane").await;
    site.given_organization(SITE_TOKEN, "acme").await;
    let admin = site.admin().await;
    let key = site.control_plane.create_ssh_key(&admin, "acme", attributes("deploy", Some("x"))).await.expect("a key");
    let stranger = site.with_token(&token).await.expect("a caller");
    let control_plane = &site.control_plane;
    assert_eq!(kind(control_plane.ssh_key(&stranger, key.id).await), "not found");
    assert_eq!(kind(control_plane.update_ssh_key(&stranger, key.id, attributes("x", None)).await), "not found");
    assert_eq!(kind(control_plane.delete_ssh_key(&stranger, key.id).await), "not found");
    assert_eq!(kind(control_plane.create_ssh_key(&stranger, "acme", attributes("x", Some("y"))).await), "not found");
}
