//! Someone who found an open browser, or stole a session, and tries what the password might be.

use harness::browser::PASSWORD;
use reqwest::StatusCode;

use crate::site::Site;

const ACCOUNT: &str = "/app/settings/account";

#[tokio::test]
async fn guessing_the_current_password_is_slowed_down() {
    let site = Site::start();
    let here = site.admin().await;
    let form = here.get(ACCOUNT).await.form(&format!("{ACCOUNT}/password"));
    let new = "battery staple horse";
    for number in 0..10 {
        let guess = format!("guess {number}");
        let page = here.send(&form, &[("current", guess.as_str()), ("password", new), ("repeated", new)]).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(page.text.contains("current password is not this one"), "{}", page.text);
    }
    // Now not even the right one is looked at.
    let page = here.send(&form, &[("current", PASSWORD), ("password", new), ("repeated", new)]).await;
    assert_eq!(page.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(page.text.contains("Too many attempts"), "{}", page.text);
    assert!(page.header("retry-after").parse::<u64>().is_ok_and(|seconds| (1..=60).contains(&seconds)));
}
