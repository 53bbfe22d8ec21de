use harness::graph_states::{reading, reading_elsewhere, state};
use harness::page_server::PageServer;
use reqwest::StatusCode;
use serde_json::json;

const APP: &str = "/app/acme/workspaces/app/dependencies";
const HISTORY: &str = "/app/acme/workspaces/network/outputs/history";
const OLD: [(&str, &str); 2] = [("vpc_id", "vpc-0a1b2c3d4e5f"), ("subnet_id", "subnet-11aa22bb33cc")];
const NEW: [(&str, &str); 2] = [("vpc_id", "vpc-0a1b2c3d4e5f"), ("subnet_id", "subnet-99ff88ee77dd")];

/// A server where `app` has read outputs of `network` before one of them changed; and the ids of both.
async fn given_graph() -> (PageServer, [String; 2]) {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let network = site.api.given_workspace("acme", "network").await;
    let app = site.api.given_workspace("acme", "app").await;
    site.api.given_state(&network, &state(1, &OLD)).await;
    let read = reading(state(1, &[]), "network", &OLD);
    site.api.given_state(&app, &reading_elsewhere(read, "old-states", &[("zone", "zone-5566778899aa")])).await;
    site.api.given_state(&network, &state(2, &NEW)).await;
    (site, [network, app])
}

#[tokio::test]
async fn the_graph_shows_what_uses_what_as_a_picture_and_as_a_list() {
    let (site, _) = given_graph().await;
    let page = site.admin().await.get("/app/acme/graph").await;
    assert_eq!(page.status, StatusCode::OK);
    for part in [
        r#"<a href="/app/acme/workspaces/network" tabindex="-1" class="good""#,
        r#"<a href="/app/acme/workspaces/app" tabindex="-1" class="asks""#,
        "app uses subnet_id, vpc_id of network: stale",
        "s3://old-states/base.tfstate",
        r#"<th scope="row"><a href="/app/acme/workspaces/app/dependencies">app</a></th>"#,
        "network changed subnet_id",
    ] {
        assert!(page.text.contains(part), "{part} is missing:\n{}", page.text);
    }
    assert!(!page.text.contains("style=") && !page.text.contains("<style"), "{}", page.text);
}

#[tokio::test]
async fn a_part_of_the_graph_has_an_address() {
    let (site, [network, _]) = given_graph().await;
    site.api.given_workspace("acme", "alone").await;
    let browser = site.admin().await;
    let listed = async |query: &str| {
        let page = browser.get(&format!("/app/acme/graph?{query}")).await;
        assert_eq!(page.status, StatusCode::OK);
        let rows = page.text.split("<th scope=\"row\"><a href=\"/app/acme/workspaces/").skip(1);
        rows.map(|row| row.split('/').next().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed("").await, ["app", "alone", "network"], "what needs someone comes first");
    assert_eq!(listed("stale=1").await, ["app", "network"], "with the producer that made it so");
    assert_eq!(listed("around=network&hops=1").await, ["app", "network"]);
    assert_eq!(listed("around=alone").await, ["alone"]);
    assert_eq!(listed("project=none").await, [""; 0]);
    let tag = json!({ "data": [{ "type": "tags", "attributes": { "name": "shared" } }] });
    let path = format!("/api/v2/workspaces/{network}/relationships/tags");
    site.api.admin().post(&path, &tag).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(listed("tag=shared").await, ["network"]);
}

#[tokio::test]
async fn a_circle_is_one_box_with_a_warning() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let one = site.api.given_workspace("acme", "one").await;
    let other = site.api.given_workspace("acme", "other").await;
    let (of_one, of_other) = ([("issuer", "https://one.acme.test/44")], [("client", "client-of-acme-55")]);
    site.api.given_state(&one, &reading(state(1, &of_one), "other", &of_other)).await;
    site.api.given_state(&other, &reading(state(1, &of_other), "one", &of_one)).await;
    let page = site.admin().await.get("/app/acme/graph").await;
    assert!(page.text.contains("these workspaces use each other in a circle: one, other"), "{}", page.text);
    assert!(page.text.contains("2 workspaces use each other"), "{}", page.text);
}

#[tokio::test]
async fn a_stale_workspace_says_why_and_a_word_of_its_owner_counts() {
    let (site, _) = given_graph().await;
    let browser = site.admin().await;
    let page = browser.get(APP).await;
    assert_eq!(page.status, StatusCode::OK);
    let names_and_times = ["changed <code>subnet_id</code> in commit 2", "<time datetime=\"2"];
    for part in ["app is stale", "last applied against commit 1"].into_iter().chain(names_and_times) {
        assert!(page.text.contains(part), "{part} is missing:\n{}", page.text);
    }
    let forms = page.text.split("action=\"").skip(1).filter_map(|form| form.split('"').next());
    let acknowledge = forms.clone().find(|form| form.ends_with("/acknowledge")).expect("a form").to_owned();
    let done = browser.send(&page.form(&acknowledge), &[("reason", "same <b>subnet</b>")]).await;
    assert_eq!(done.done(), format!("{APP}: Outputs of network acknowledged."));
    let page = browser.get(APP).await;
    assert!(page.text.contains("acknowledged by admin: same &#60;b&#62;subnet"), "{}", page.text);
    assert!(!page.text.contains("app is stale"), "{}", page.text);
}

#[tokio::test]
async fn dependencies_are_declared_muted_and_removed_on_the_page() {
    let (site, _) = given_graph().await;
    site.api.given_workspace("acme", "dns").await;
    let browser = site.admin().await;
    let page = browser.get(APP).await;
    let wrong = browser.send(&page.form(APP), &[("producer", "nothing"), ("outputs", "")]).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        wrong.text.contains("in this organization that you may see") && wrong.text.contains("value=\"nothing\""),
        "{}",
        wrong.text
    );
    let fields = [("producer", "dns"), ("outputs", "zone, name")];
    let declared = browser.send(&page.form(APP), &fields).await;
    assert_eq!(declared.done(), format!("{APP}: Declared that app uses outputs of dns."));
    let page = browser.get(APP).await;
    let remove = page.text.split("action=\"").skip(1).filter_map(|form| form.split('"').next());
    let remove = remove.filter(|form| form.ends_with("/remove")).collect::<Vec<_>>();
    let [remove] = remove.as_slice() else { panic!("what was seen cannot be removed: {remove:?}") };
    let of_dns = remove.strip_suffix("/remove").expect("its end");
    for (verb, fields, said) in [
        ("mute", &[("reason", "for now")][..], "Dependency on dns muted."),
        ("unmute", &[], "Dependency on dns counts again."),
        ("policy", &[("policy", "ignore")], "Dependency on dns saved."),
        ("remove", &[], "Declaration removed."),
    ] {
        let page = browser.get(APP).await;
        let done = browser.send(&page.form(&format!("{of_dns}/{verb}")), fields).await;
        assert_eq!(done.done(), format!("{APP}: {said}"));
    }
    let page = browser.get(APP).await;
    assert!(!page.text.contains(of_dns) && page.text.contains("network"), "{}", page.text);
    let unknown = page.form(APP);
    let unknown = harness::browser::PageForm { action: format!("{APP}/dep-nonsense/mute"), ..unknown };
    assert_eq!(browser.send(&unknown, &[]).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn outputs_have_a_history_with_values_for_those_who_may_read_states() {
    let (site, [network, _]) = given_graph().await;
    let admin = site.admin().await;
    let page = admin.get(&format!("{HISTORY}?from=1&to=2&commit=1")).await;
    assert_eq!(page.status, StatusCode::OK);
    for part in
        ["Changes between commits 1 and 2", "subnet-11aa22bb33cc", "subnet-99ff88ee77dd", "Outputs after commit 1"]
    {
        assert!(page.text.contains(part), "{part} is missing:\n{}", page.text);
    }
    let beyond = admin.get(&format!("{HISTORY}?from=1&to=9")).await;
    assert!(beyond.status == StatusCode::OK && beyond.text.contains("there is no output commit 9"), "{}", beyond.text);
    assert_eq!(admin.get(&format!("{HISTORY}?commit=9")).await.status, StatusCode::NOT_FOUND);
    let reader = site.member("jane", "acme", &network, "plan").await;
    let page = reader.get("/app/acme/graph").await;
    assert!(page.text.contains("network") && !page.text.contains("/app/acme/workspaces/app\""), "{}", page.text);
    assert!(page.text.contains("a unit you may not see uses"), "its consumer has no name here: {}", page.text);
}
