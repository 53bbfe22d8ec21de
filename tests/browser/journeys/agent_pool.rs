use super::{Journey, told_with_and_without_scripts};

told_with_and_without_scripts!(an_agent_comes_with_the_line_that_the_page_shows);

async fn an_agent_comes_with_the_line_that_the_page_shows(journey: Journey) {
    journey.makes_workspace("web").await;
    let admin = &journey.admin;
    admin.follows("Agents").await;
    admin.presses("New pool").await;
    admin.types("#name", "rack-1").await;
    admin.presses("Create pool").await;
    admin.arrives_at("/app/acme/agents/pools/apool-").await;
    let pool = admin.place().await;
    let pool = pool.split('?').next().expect("a first part");
    admin.presses("New token").await;
    admin.types("[name=description]", "host 7").await;
    admin.presses("Create token").await;
    let line = admin.text_of(".secret code").await;
    let token = line.split_whitespace().find(|word| word.starts_with("taco_")).expect("a token").to_owned();
    let _agent = journey.sample_site.installation.agent("host-7", &token);
    loop {
        admin.goes_to(pool).await;
        assert!(!admin.source().await.contains(&token), "it is shown once");
        if admin.text().await.contains("Idle") {
            break;
        }
    }
    assert!(admin.text_of("table").await.contains("host-7"));
    journey.ends().await;
}
