//! Tags of workspaces and projects: keys, with or without a value. A plain tag is a key with an empty value.
//!
//! A tag exists for as long as something carries it, so it has no record: its id follows from its key.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::attribute::{InvalidAttribute, shown};
use crate::id::{OrganizationPrefix, TagId};
use crate::name::{TagKey, check_tag};

/// Maximum number of tags on one thing.
const MAX_TAGS: usize = 25;
const LONGEST_VALUE: usize = 256;

pub type Tags = BTreeMap<TagKey, String>;

/// A tag as a request names it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct TagBinding {
    #[serde(alias = "name")]
    pub key: String,
    #[serde(default)]
    pub value: Option<String>,
}

/// The id of a tag within an organization.
pub fn tag_id(prefix: OrganizationPrefix, key: &TagKey) -> TagId {
    TagId::derived(prefix, key.as_str())
}

/// `tags` with more of them; a value replaces the one before it.
pub fn with_tags(tags: &Tags, more: &[TagBinding]) -> Result<Tags, InvalidAttribute> {
    let mut tags = tags.clone();
    for binding in more {
        let key: TagKey = binding.key.parse()?;
        let value = binding.value.clone().unwrap_or_default();
        if !value.is_empty() {
            check_tag("Value", "value", &value, LONGEST_VALUE)?;
        }
        tags.insert(key, value);
    }
    if tags.len() > MAX_TAGS {
        let detail = format!("Tags cannot exceed {MAX_TAGS} for one resource; these would be {}", tags.len());
        return Err(InvalidAttribute::new("tag-bindings", detail));
    }
    Ok(tags)
}

/// A tag that counts for a workspace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EffectiveTag<'a> {
    pub key: &'a TagKey,
    pub value: &'a str,
    /// True if it comes from its project; one of its own with the same key would win.
    pub inherited: bool,
}

/// A workspace's own tags and those of its project, by key.
pub fn effective_tags<'a>(own: &'a Tags, project: &'a Tags) -> Vec<EffectiveTag<'a>> {
    let mut tags: BTreeMap<&TagKey, EffectiveTag<'a>> =
        project.iter().map(|(key, value)| (key, EffectiveTag { key, value, inherited: true })).collect();
    tags.extend(own.iter().map(|(key, value)| (key, EffectiveTag { key, value, inherited: false })));
    tags.into_values().collect()
}

/// One condition of a list: a key, and perhaps its value.
pub fn matches(own: &Tags, project: &Tags, key: &str, value: Option<&str>) -> bool {
    let found = |tags: &Tags| tags.iter().find(|(name, _)| name.as_str() == key).map(|(_, value)| value.clone());
    let carried = found(own).or_else(|| found(project));
    match (carried, value.filter(|value| !value.is_empty())) {
        (Some(carried), Some(wanted)) => carried == wanted,
        (carried, _) => carried.is_some(),
    }
}

/// Says which tag was meant when there is none.
pub fn no_such_tag(text: &str) -> String {
    format!("there is no tag {}", shown(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::OrganizationId;

    fn binding(key: &str, value: &str) -> TagBinding {
        TagBinding { key: key.into(), value: (!value.is_empty()).then(|| value.into()) }
    }

    #[test]
    fn tags_are_added_by_key() {
        let tags = with_tags(&Tags::new(), &[binding("b", "1"), binding("a", "")]).expect("legal");
        let tags = with_tags(&tags, &[binding("b", "2")]).expect("legal");
        let listed: Vec<_> = tags.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(listed, [("a", ""), ("b", "2")]);
    }

    #[test]
    fn too_many_or_malformed_tags_are_refused() {
        let many: Vec<_> = (0..26).map(|number| binding(&format!("tag{number}"), "")).collect();
        assert!(with_tags(&Tags::new(), &many[..25]).is_ok());
        assert_eq!(with_tags(&Tags::new(), &many).expect_err("too many").attribute, "tag-bindings");
        assert_eq!(with_tags(&Tags::new(), &[binding("", "")]).expect_err("blank").attribute, "key");
        assert_eq!(with_tags(&Tags::new(), &[binding("a", "\0")]).expect_err("NUL").attribute, "value");
    }

    #[test]
    fn a_workspaces_own_tag_wins_over_its_projects() {
        let project = with_tags(&Tags::new(), &[binding("env", "dev"), binding("team", "x")]).expect("legal");
        let own = with_tags(&Tags::new(), &[binding("env", "prod")]).expect("legal");
        let listed: Vec<_> = effective_tags(&own, &project)
            .iter()
            .map(|tag| (tag.key.as_str(), tag.value.to_owned(), tag.inherited))
            .collect();
        assert_eq!(listed, [("env", "prod".to_owned(), false), ("team", "x".to_owned(), true)]);
        for (key, value, expected) in [
            ("env", None, true),
            ("env", Some(""), true),
            ("env", Some("prod"), true),
            ("env", Some("dev"), false),
            ("team", Some("x"), true),
            ("other", None, false),
        ] {
            assert_eq!(matches(&own, &project, key, value), expected, "{key} {value:?}");
        }
    }

    #[test]
    fn the_same_tag_has_the_same_id_within_an_organization() {
        let key: TagKey = "env".parse().expect("legal");
        let prefix = OrganizationId::from_random([1; 16]).organization_prefix();
        assert_eq!(tag_id(prefix, &key), tag_id(prefix, &key));
        assert_ne!(tag_id(prefix, &key), tag_id(prefix, &"team".parse().expect("legal")));
    }
}
