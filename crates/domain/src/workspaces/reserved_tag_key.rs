//! Reserved tag keys: keys that an organization keeps for a purpose of its own. One without overrides takes its value
//! from the project alone.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes};
use taco_words::id_kinds;

use crate::attribute::InvalidAttribute;
use crate::name::TagKey;
use crate::tag::Tags;

/// Maximum number of reserved keys of an organization.
pub const MAX_RESERVED_TAG_KEYS: usize = 200;

id_kinds! {
    /// A tag key that an organization keeps for a purpose of its own.
    ReservedTagKeyId = "rtk";
}

/// A tag key that an organization keeps for a purpose of its own.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct ReservedTagKey {
    pub id: ReservedTagKeyId,
    pub key: TagKey,
    /// A workspace cannot give the key another value than its project.
    pub disable_overrides: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Record for ReservedTagKey {
    const KIND: &'static str = "reserved-tag-key";
    const NOUN: &'static str = "reserved tag key";
    const UNIQUE: &'static [&'static str] = &["key"];
    type Id = ReservedTagKeyId;
    type Indexes = ReservedTagKeyIndexes;

    fn id(&self) -> &ReservedTagKeyId {
        &self.id
    }
}

indexes! {
    pub struct ReservedTagKeyIndexes for ReservedTagKey {
        /// The order of lists.
        pub key: TagKey, unique "key" => |reserved| [reserved.key.clone()];
    }
}

/// The attributes of a request that reserves a key or changes what is reserved, spelled as on the wire.
#[derive(Clone, Default, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct ReservedTagKeyPatch {
    pub key: Option<String>,
    pub disable_overrides: Option<bool>,
}

impl ReservedTagKeyPatch {
    /// The key that the request names.
    pub fn key(&self) -> Result<Option<TagKey>, InvalidAttribute> {
        let parse = |key: &String| {
            let invalid =
                |error: InvalidAttribute| InvalidAttribute::new("key", format!("Key is invalid. {}", error.detail));
            key.parse().map_err(invalid)
        };
        self.key.as_ref().map(parse).transpose()
    }
}

/// Checks that a workspace's own tags give no reserved key another value than the project does. What the workspace carried
/// before stays, so that reserving a key makes no workspace unchangeable.
pub fn check_overrides<'a>(
    reserved: impl Fn(&TagKey) -> Option<&'a ReservedTagKey>,
    project: &Tags,
    before: &Tags,
    after: &Tags,
) -> Result<(), InvalidAttribute> {
    for (key, value) in after {
        let is_fixed = || reserved(key).is_some_and(|reserved| reserved.disable_overrides);
        let Some(from_project) = project.get(key) else { continue };
        if value != from_project && before.get(key) != Some(value) && is_fixed() {
            let detail = format!(
                "The tag key {key} is reserved: its value {from_project:?} comes from the project, and workspaces cannot override it"
            );
            return Err(InvalidAttribute::new("tag-bindings", detail));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(text: &str) -> Tags {
        let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
        pairs.map(|(key, value)| (key.parse().expect("a key"), value.to_owned())).collect()
    }

    fn reserved(key: &str, disable_overrides: bool) -> ReservedTagKey {
        ReservedTagKey {
            id: ReservedTagKeyId::from_random([1; 16]),
            key: key.parse().expect("a key"),
            disable_overrides,
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn only_a_new_value_for_a_fixed_key_of_the_project_is_refused() {
        let fixed = [reserved("env", true), reserved("team", false)];
        for (project, before, after, is_legal) in [
            ("env=prod", "", "env=prod", true),
            ("env=prod", "", "env=dev", false),
            ("env=prod", "env=dev", "env=dev", true),
            ("env=prod", "env=dev", "env=test", false),
            ("env=prod", "env=dev", "", true),
            ("", "", "env=dev", true),
            ("team=a", "", "team=b", true),
            ("other=a", "", "other=b", true),
        ] {
            let find = |key: &TagKey| fixed.iter().find(|reserved| reserved.key == *key);
            let outcome = check_overrides(find, &tags(project), &tags(before), &tags(after));
            assert_eq!(outcome.is_ok(), is_legal, "{project} {before} {after}: {outcome:?}");
        }
    }

    #[test]
    fn a_key_that_no_tag_can_have_is_refused_in_the_words_that_clients_know() {
        let patch = |key: &str| ReservedTagKeyPatch { key: Some(key.to_owned()), ..ReservedTagKeyPatch::default() };
        assert!(patch("cost-center").key().is_ok_and(|key| key.is_some()));
        let refused = patch("! / nope").key().expect_err("it has a !");
        assert!(refused.detail.starts_with("Key is invalid. Key may only contain"), "{}", refused.detail);
    }
}
