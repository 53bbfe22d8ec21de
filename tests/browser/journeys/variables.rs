use super::{Journey, told_with_and_without_scripts};

told_with_and_without_scripts!(variables_are_added_changed_pasted_and_deleted);

async fn variables_are_added_changed_pasted_and_deleted(journey: Journey) {
    journey.makes_workspace("web").await;
    let admin = &journey.admin;
    admin.follows("Variables").await;
    admin.presses("New variable").await;
    admin.types("#key", "region").await;
    admin.types("#value", "eu-central").await;
    admin.presses("Create variable").await;
    admin.reads("eu-central").await;
    admin.presses("New variable").await;
    admin.types("#key", "TOKEN").await;
    admin.types("#value", "a secret").await;
    admin.clicks("input[name=category][value=env]").await;
    admin.clicks("input[name=sensitive]").await;
    admin.presses("Create variable").await;
    admin.reads("TOKEN").await;
    assert!(!admin.source().await.contains("a secret"), "a sensitive value is never shown again");

    admin.clicks("a[aria-label^='Edit region']").await;
    admin.types("#value", "eu-north").await;
    admin.presses("Save variable").await;
    admin.reads("eu-north").await;
    assert!(!admin.text().await.contains("eu-central"));

    admin.presses("New variable").await;
    admin.types("#key", "not a key").await;
    admin.types("#value", "kept").await;
    admin.presses("Create variable").await;
    admin.reads("may only contain").await;
    let complaints = admin.complaints().await;
    assert!(complaints.iter().all(|complaint| complaint.contains("422")), "{complaints:?}");
    admin.goes_to("/app/acme/workspaces/web/variables").await;

    admin.presses("Import file").await;
    admin.types("#text", "region = \"us-east\"\nsize = 3").await;
    admin.presses("Preview").await;
    admin.reads("Review changes").await;
    admin.presses("Import 2 variables").await;
    admin.reads("us-east").await;
    admin.presses("Delete size, terraform").await;
    admin.clicks(".dialog:popover-open button.destroy").await;
    admin.reads("Variable size deleted.").await;
    admin.goes_to("/app/acme/workspaces/web/variables").await;
    assert!(!admin.text().await.contains("size"), "{}", admin.text().await);
    journey.ends().await;
}
