use harness::browser::PASSWORD;

use super::{Journey, told_with_and_without_scripts};

told_with_and_without_scripts!(a_token_is_made_and_revoked);

async fn a_token_is_made_and_revoked(journey: Journey) {
    let admin = &journey.admin;
    admin.clicks("details.menu summary").await;
    admin.presses("Log out").await;
    admin.arrives_at("/login").await;

    admin.goes_to("/app/settings/tokens").await;
    admin.types("[name=username]", "admin").await;
    admin.types("[name=password]", PASSWORD).await;
    admin.clicks("main button").await;
    admin.arrives_at("/app/settings/tokens").await;

    admin.presses("New token").await;
    admin.types("[name=description]", "laptop").await;
    admin.presses("Create token").await;
    let token = admin.text_of(".secret code").await;
    let client = journey.sample_site.installation.with_token(&token);
    assert_eq!(client.get("/api/v2/account/details").await["data"]["attributes"]["username"], "admin");
    admin.goes_to("/app/settings/tokens").await;
    let text = admin.text().await;
    assert!(text.contains("laptop") && !text.contains(&token), "it is shown once: {text}");
    admin.clicks("button[popovertarget^='ask:']").await;
    admin.clicks(".dialog:popover-open button.destroy").await;
    admin.reads("No tokens yet").await;
    assert_eq!(client.send("GET", "/api/v2/account/details", None).await.0, 401);
    journey.ends().await;
}
