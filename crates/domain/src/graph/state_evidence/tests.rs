use super::*;

const KEY: [u8; 32] = [7; 32];

/// As terraform 1.11.4 writes it.
const STATE: &str = r#"{
    "version": 4, "terraform_version": "1.11.4", "serial": 3, "lineage": "8094ef40",
    "outputs": {"pass": {"value": "unused-0123", "type": "string"}, "port": {"value": 8443, "type": "number"}},
    "resources": [
        {"mode": "data", "type": "terraform_remote_state", "name": "a", "provider": "provider[\"terraform.io/builtin/terraform\"]",
         "instances": [{"schema_version": 0, "attributes": {"backend": "remote",
            "config": {"value": {"hostname": "taco.example.com", "organization": "acme", "workspaces": {"name": "network"}},
                "type": ["object", {"hostname": "string", "organization": "string", "workspaces": ["object", {"name": "string"}]}]},
            "defaults": {"value": {"d": "x"}, "type": ["object", {"d": "string"}]},
            "outputs": {"value": {"d": "x", "num": 123456789012345678901234567890.10, "set": ["x", "y"], "we-ird.key é": null, "vpc_id": "vpc-0123456789"},
                "type": ["object", {"d": "string", "num": "number", "set": ["set", "string"], "we-ird.key é": "dynamic", "vpc_id": "string"}]},
            "workspace": null}, "sensitive_attributes": []}]},
        {"mode": "data", "type": "terraform_remote_state", "name": "many", "instances": [
            {"index_key": "p", "attributes": {"backend": "s3", "config": {"value": {"bucket": "b", "key": "k"}, "type": ["object", {"bucket": "string", "key": "string"}]},
                "outputs": {"value": {"one": "1"}, "type": ["map", "string"]}, "workspace": "prod"}},
            {"index_key": "q", "attributes": {"backend": "s3", "config": null, "outputs": null}}]},
        {"mode": "data", "type": "tfe_outputs", "name": "t", "provider": "provider[\"registry.terraform.io/hashicorp/tfe\"]",
         "instances": [{"attributes": {"id": "acme-network", "organization": "acme", "workspace": "network",
            "nonsensitive_values": {"value": {"vpc_id": "vpc-0123456789"}, "type": ["object", {"vpc_id": "string"}]},
            "values": {"value": {"pw": "hunter2hunter2", "vpc_id": "vpc-0123456789"}, "type": ["object", {"pw": "string", "vpc_id": "string"}]}},
            "sensitive_attributes": [[{"type": "get_attr", "value": "values"}]]}]},
        {"mode": "data", "type": "aws_ami", "name": "other", "instances": [{"attributes": {"id": "ami-0123456789"}}]},
        {"mode": "managed", "type": "terraform_data", "name": "direct", "instances": [
            {"schema_version": 0, "attributes": {"id": "c6dd4c83-45e9", "input": {"value": {"vpc": "arn:vpc/vpc-0123456789"}, "type": ["object", {"vpc": "string"}]}},
             "dependencies": ["data.terraform_remote_state.a", "data.terraform_remote_state.many"]}]},
        {"module": "module.m[\"a\"]", "mode": "data", "type": "terraform_remote_state", "name": "inner", "instances": [
            {"attributes": {"backend": "local", "config": {"value": {"path": "/x.tfstate"}, "type": ["object", {"path": "string"}]},
                "outputs": {"value": {"a": true}, "type": ["object", {"a": "bool"}]}}}]},
        {"module": "module.m[\"b\"]", "mode": "data", "type": "terraform_remote_state", "name": "inner", "instances": [{"attributes": 7}]},
        {"module": "module.m[\"a\"]", "mode": "managed", "type": "terraform_data", "name": "m", "instances": [
            {"index_key": 0, "attributes": {"id": "5671bf79-c60d"}, "dependencies": ["data.tfe_outputs.t", "module.m.data.terraform_remote_state.inner"]},
            {"index_key": 1, "attributes": {"id": "77957257-931b"}, "deposed": "00000001", "dependencies": ["data.tfe_outputs.t"]}]},
        {"module": "module.m[\"b\"]", "mode": "managed", "type": "terraform_data", "name": "m", "instances": [
            {"attributes": {}, "dependencies": ["module.m.data.terraform_remote_state.inner"]},
            {"attributes": [], "dependencies": 7}]}
    ]
}"#;

fn evidence(state: &str) -> StateEvidence {
    StateEvidence::read(state.as_bytes(), &TokenKey::of(&KEY)).expect("a state")
}

fn value(json: &str) -> ValueTokens {
    TokenKey::of(&KEY).of_value(&RawValue::from_string(json.to_owned()).expect("JSON"))
}

#[test]
fn a_state_tells_what_it_read_and_who_uses_it() {
    let evidence = evidence(STATE);
    let reads: Vec<_> = evidence
        .reads
        .iter()
        .map(|read| {
            let producer = read.producer.as_ref().map(ToString::to_string).unwrap_or_default();
            (read.data.as_str(), producer, read.users.join(" "), read.user_count)
        })
        .collect();
    assert_eq!(
        reads,
        [
            (
                "data.terraform_remote_state.a",
                "remote://taco.example.com/acme/network".to_owned(),
                "terraform_data.direct".to_owned(),
                1
            ),
            (
                r#"data.terraform_remote_state.many["p"]"#,
                "s3://b/env:/prod/k".to_owned(),
                "terraform_data.direct".to_owned(),
                1
            ),
            (r#"data.terraform_remote_state.many["q"]"#, "s3:".to_owned(), "terraform_data.direct".to_owned(), 1),
            (
                "data.tfe_outputs.t",
                "remote:///acme/network".to_owned(),
                r#"module.m["a"].terraform_data.m[0]"#.to_owned(),
                1
            ),
            (
                r#"module.m["a"].data.terraform_remote_state.inner"#,
                "local:/x.tfstate".to_owned(),
                r#"module.m["a"].terraform_data.m[0]"#.to_owned(),
                1
            ),
        ]
    );
    assert!(evidence.complete && !evidence.encrypted);
}

#[test]
fn values_keep_their_text_and_type() {
    let evidence = evidence(STATE);
    let listed = |read: &OutputRead| {
        let listed = read.values.iter().map(|(name, value)| {
            let detailed_type = value.detailed_type.as_ref().map_or("?", |raw| raw.get());
            format!("{name}: {detailed_type} = {}", value.value.get())
        });
        listed.collect::<Vec<_>>()
    };
    assert_eq!(
        listed(&evidence.reads[0]),
        [
            r#"d: "string" = "x""#,
            r#"num: "number" = 123456789012345678901234567890.10"#,
            r#"set: ["set", "string"] = ["x", "y"]"#,
            r#"vpc_id: "string" = "vpc-0123456789""#,
            r#"we-ird.key é: "dynamic" = null"#,
        ]
    );
    assert_eq!(evidence.reads[0].defaults, BTreeSet::from(["d".to_owned()]));
    assert_eq!(listed(&evidence.reads[1]), [r#"one: "string" = "1""#]);
    assert_eq!(
        listed(&evidence.reads[3]),
        [r#"pw: "string" = "hunter2hunter2""#, r#"vpc_id: "string" = "vpc-0123456789""#]
    );
    let used = UsedOutputs::Names(["pw".to_owned()].into());
    assert_eq!(evidence.reads[3].used(&used).count(), 1);
}

#[test]
fn tokens_are_those_of_managed_resources() {
    let evidence = evidence(STATE);
    let vpc = value("\"vpc-0123456789\"").distinctive[0];
    assert!(evidence.tokens.holds(vpc) && evidence.users[0].held.holds(vpc));
    assert!(!evidence.tokens.holds(value("\"ami-0123456789\"").distinctive[0]), "data sources hold nothing");
    assert!(!evidence.tokens.holds(value("\"77957257-931b\"").distinctive[0]), "it is about to be destroyed");
    assert!(evidence.tokens.has_made(value("\"c6dd4c83-45e9\"").distinctive[0]));
    assert_eq!(evidence.tokens.outputs["pass"], value("\"unused-0123\""));
    let stored = serde_json::to_string(&evidence.tokens).expect("JSON");
    assert_eq!(serde_json::from_str::<EchoTokens>(&stored).expect("tokens"), evidence.tokens);
}

#[test]
fn the_order_of_keys_does_not_matter() {
    let sorted = serde_json::to_string(&serde_json::from_str::<Value>(STATE).expect("JSON")).expect("JSON");
    let (one, other) = (evidence(STATE), evidence(&sorted));
    assert!(sorted.find("\"instances\"") < sorted.find("\"mode\""), "the keys are sorted");
    assert_eq!(one.tokens, other.tokens);
    let listed = |evidence: &StateEvidence| {
        evidence.reads.iter().map(|read| (read.data.clone(), read.users.clone())).collect::<Vec<_>>()
    };
    assert_eq!(listed(&one), listed(&other));
}

#[test]
fn an_encrypted_state_tells_nothing_more() {
    let state = r#"{"serial":3,"lineage":"x","meta":{},"encrypted_data":"AAAA","encryption_version":"v0"}"#;
    assert!(evidence(state).encrypted);
}

#[test]
fn a_resource_with_many_users_lists_some() {
    let instances: Vec<String> = (0..50)
        .map(|index| format!(r#"{{"index_key":{index},"attributes":{{}},"dependencies":["data.tfe_outputs.t"]}}"#))
        .collect();
    let state = format!(
        r#"{{"version":4,"resources":[{{"mode":"data","type":"tfe_outputs","name":"t","instances":[{{"attributes":{{}}}}]}},
            {{"mode":"managed","type":"x","name":"y","instances":[{}]}}]}}"#,
        instances.join(",")
    );
    let read = &evidence(&state).reads[0];
    assert_eq!((read.users.len(), read.user_count, &read.producer), (MAX_LISTED_USERS, 50, &None));
}

#[test]
fn what_is_no_state_is_refused() {
    for state in ["", "[]", "{}", r#"{"version":3}"#, r#"{"version":4,"resources":7}"#, r#"{"version":4} x"#] {
        StateEvidence::read(state.as_bytes(), &TokenKey::of(&KEY)).expect_err(state);
    }
}

#[test]
fn large_outputs_and_many_of_them_are_read() {
    let outputs: Vec<String> = (0..10_000).map(|number| format!(r#""o{number}":"value-{number}""#)).collect();
    let large = "x".repeat(5 << 20);
    let state = format!(
        r#"{{"version":4,"resources":[{{"mode":"data","type":"terraform_remote_state","name":"t","instances":[{{"attributes":{{
            "outputs":{{"value":{{"large":"{large}",{}}},"type":["object",{{"large":"string"}}]}}}}}}]}}]}}"#,
        outputs.join(",")
    );
    let evidence = evidence(&state);
    assert_eq!(evidence.reads[0].values.len(), 10_001);
    assert_eq!(evidence.reads[0].values["large"].value.get().len(), large.len() + 2);
}
