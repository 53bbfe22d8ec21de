//! The tests: samples are read, samples are complete, and the shape is the one that was agreed on.

use std::fs;

use harness::formats::coverage::Facts;
use harness::formats::frozen::{names, samples, shapes_file};
use harness::formats::roots::roots;
use harness::formats::{show, shown_today, text_of};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

/// Instructions for when one of these tests fails and the change is intended.
const WHAT_TO_DO: &str = "\
If it is meant: `cargo xtask samples` adds samples of the new shape to migrations-in-bucket/ and never touches those that
are there. Look at what it added, and note the change in CHANGELOG.md: can a server, or an agent, of the previous release
read what this one writes? Fields are added as optional, and never removed, renamed or given another type
(docs/decisions/0027-records-of-newer-servers.md).";

#[test]
fn every_sample_is_read_and_nothing_of_it_is_dropped() {
    let (roots, shapes) = roots();
    let mut troubles = Vec::new();
    for root in &roots {
        for (number, sample) in samples(&root.name).iter().enumerate() {
            let mut complain = |why: &str| troubles.push(format!("{} line {}: {why}", root.name, number + 1));
            let shown = match show(&shapes, root, sample) {
                Ok(shown) => shown,
                Err(why) => {
                    complain(&why);
                    continue;
                }
            };
            match root.round_trip.map(|round_trip| round_trip(sample)) {
                None => {}
                Some(Err(why)) => complain(&format!("it cannot be read any more: {why}")),
                Some(Ok(written)) if shown.missing.is_empty() && written != *sample => {
                    complain(&format!("this version writes it as\n{written}\nand not as\n{sample}"));
                }
                Some(Ok(written)) => {
                    let (written, sample) = (json(&written), json(sample));
                    if !contains(&written, &sample) {
                        complain(&format!("something of it is dropped: this version writes\n{written}\nfor\n{sample}"));
                    }
                }
            }
        }
    }
    assert!(
        troubles.is_empty(),
        "frozen samples are no longer read as they were, so neither are buckets of earlier releases:\n{}\n\n{WHAT_TO_DO}",
        troubles.join("\n")
    );
}

#[test]
fn every_field_and_every_variant_has_a_sample() {
    let (roots, shapes) = roots();
    let (mut never, mut outdated) = (Vec::new(), Vec::new());
    for root in &roots {
        let ever: Facts = samples(&root.name)
            .iter()
            .filter_map(|sample| show(&shapes, root, sample).ok())
            .flat_map(|it| it.facts)
            .collect();
        let today = shown_today(&shapes, root);
        for fact in shapes.all_facts(&root.shape).difference(&today) {
            let list = if ever.contains(fact) { &mut outdated } else { &mut never };
            list.push(format!("{}: {fact}", root.name));
        }
    }
    let missing = if never.is_empty() { outdated } else { never };
    assert!(
        missing.is_empty(),
        "a stored shape or a message changed: no frozen sample, as this version writes them, shows\n{}\n\n{WHAT_TO_DO}",
        missing.join("\n")
    );
}

#[test]
fn no_shape_changes_unnoticed() {
    let (_, shapes) = roots();
    let (agreed, found) = (fs::read_to_string(shapes_file()).unwrap_or_default(), text_of(&shapes));
    let diff = TextDiff::from_lines(&agreed, &found);
    let mut changes = Vec::new();
    let mut of = "";
    for change in diff.iter_all_changes() {
        let line = change.value().trim_end();
        if !line.starts_with(' ') && !line.is_empty() {
            of = line;
        }
        match change.tag() {
            _ if line.is_empty() => {}
            ChangeTag::Equal => {}
            ChangeTag::Delete => changes.push(format!("{of}: no longer `{}`", line.trim())),
            ChangeTag::Insert => changes.push(format!("{of}: now `{}`", line.trim())),
        }
    }
    assert!(
        changes.is_empty(),
        "the shape of what is stored, or of what server and agent say, is another:\n{}\n\n{WHAT_TO_DO}",
        changes.join("\n")
    );
}

#[test]
fn every_file_of_samples_belongs_to_something_that_is_stored() {
    let (roots, _) = roots();
    for name in names() {
        assert!(
            roots.iter().any(|root| root.name == name),
            "nothing is stored as {name} any more: who reads its samples?"
        );
    }
}

#[test]
fn what_records_say_of_their_fields_is_true() {
    let (roots, _) = roots();
    for root in &roots {
        for sample in samples(&root.name) {
            let value = json(&sample);
            for field in root.part_of {
                assert!(
                    value.get(field).is_some(),
                    "{} is PART_OF what its field {field:?} names: {sample}",
                    root.name
                );
            }
            for field in root.unique {
                let text = value.get(field).and_then(Value::as_str);
                assert!(text.is_some(), "{} is UNIQUE by the text of its field {field:?}: {sample}", root.name);
            }
        }
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// True if all of `part` is in `whole`.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| contains(whole, part)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| contains(whole, part))
        }
        _ => whole == part,
    }
}
