//! Names that people choose: what they may look like, and when two of them are the same.
//!
//! Parsing checks the rules of today. Reading a stored name does not: a rule that became stricter must not make
//! yesterday's records unreadable.

use taco_tables::{KeyBytes, SortKey};

use crate::attribute::{InvalidAttribute, is_plain_text, shown};

/// A name with upper and lower case made equal: what must be unique, and the order of lists.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NameKey(String);

impl SortKey for NameKey {
    fn encode(&self, key: &mut KeyBytes) {
        self.0.encode(key);
    }
}

impl NameKey {
    pub fn of(name: &str) -> Self {
        Self(name.to_lowercase())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Characters that a name may have in addition to ASCII letters and digits (no others, so that no letter looks like
/// another).
struct Shape {
    /// Name in errors, such as `Name`.
    title: &'static str,
    attribute: &'static str,
    shortest: usize,
    longest: usize,
    others: &'static str,
    /// Description of the allowed characters, for errors.
    allowed: &'static str,
    reserved: &'static [&'static str],
}

impl Shape {
    fn check(&self, name: &str) -> Result<(), InvalidAttribute> {
        let refuse = |what: String| Err(InvalidAttribute::new(self.attribute, format!("{} {what}", self.title)));
        if name.is_empty() {
            return refuse("can't be blank".to_owned());
        }
        let legal = |character: char| character.is_ascii_alphanumeric() || self.others.contains(character);
        if !name.chars().all(legal) {
            return refuse(format!("may only contain {}; it is {}", self.allowed, shown(name)));
        }
        if name.len() < self.shortest {
            return refuse(format!("is too short (minimum is {} characters); it is {}", self.shortest, shown(name)));
        }
        if name.len() > self.longest {
            return refuse(format!(
                "is too long (maximum is {} characters); it has {} and is {}",
                self.longest,
                name.len(),
                shown(name)
            ));
        }
        if name.starts_with(['-', ' ', '.']) || name.ends_with(' ') {
            return refuse(format!("must begin with a letter, a number or an underscore; it is {}", shown(name)));
        }
        if self.reserved.contains(&name.to_ascii_lowercase().as_str()) {
            return refuse(format!("{} is reserved; choose another", shown(name)));
        }
        Ok(())
    }
}

const LETTERS: &str = "letters, numbers, hyphens and underscores";

/// Stamps out kinds of names, so that none lacks its rules. A noun that nothing else names declares its own.
macro_rules! name_kinds {
    ($($(#[$attribute:meta])* $name:ident: |$text:ident| $check:expr;)*) => {$(
        $(#[$attribute])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Key that must be unique.
            pub fn key(&self) -> $crate::name::NameKey {
                $crate::name::NameKey::of(&self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::attribute::InvalidAttribute;

            fn from_str($text: &str) -> Result<Self, $crate::attribute::InvalidAttribute> {
                $check?;
                Ok(Self($text.to_owned()))
            }
        }

        impl taco_tables::SortKey for $name {
            fn encode(&self, key: &mut taco_tables::KeyBytes) {
                self.0.encode(key);
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&self.0, formatter)
            }
        }
    )*};
}
pub(crate) use name_kinds;

name_kinds! {
    /// Part of addresses in the API and on pages, hence the reserved names.
    OrganizationName: |name| Shape {
        title: "Name",
        attribute: "name",
        shortest: 3,
        longest: 40,
        others: "-_",
        allowed: LETTERS,
        reserved: &[
            "account", "admin", "api", "app", "health", "login", "logout", "metrics", "new", "oauth", "organizations",
            "register", "registry", "session", "settings", "site", "static", "users", "v1", "v2", "well-known",
        ],
    }.check(name);

    ProjectName: |name| Shape {
        title: "Name",
        attribute: "name",
        shortest: 3,
        longest: 40,
        others: "-_ ",
        allowed: "letters, numbers, spaces, hyphens and underscores",
        reserved: &[],
    }.check(name);

    /// No colon: the subject of a workload identity separates names with it.
    WorkspaceName: |name| Shape {
        title: "Name",
        attribute: "name",
        shortest: 1,
        longest: 90,
        others: "-_",
        allowed: LETTERS,
        reserved: &[],
    }.check(name);

    TeamName: |name| Shape {
        title: "Name",
        attribute: "name",
        shortest: 1,
        longest: 90,
        others: "-_ ",
        allowed: "letters, numbers, spaces, hyphens and underscores",
        reserved: &[],
    }.check(name);

    AgentPoolName: |name| Shape {
        title: "Name",
        attribute: "name",
        shortest: 1,
        longest: 90,
        others: "-_ ",
        allowed: "letters, numbers, spaces, hyphens and underscores",
        reserved: &[],
    }.check(name);

    Username: |name| Shape {
        title: "Username",
        attribute: "username",
        shortest: 2,
        longest: 60,
        others: "-_.",
        allowed: "letters, numbers, hyphens, underscores and dots",
        reserved: &[],
    }.check(name);

    /// Shown; where two sets say different things, it decides.
    VariableSetName: |name| check_label("Name", "name", name, 90);

    /// A tag without a value is its key alone.
    TagKey: |key| check_tag("Key", "key", key, 128);

    /// Only the form is checked; whether anyone reads mail there is not ours to know.
    Email: |email| check_email(email);
}

/// The form of names that are shown, and never part of an address.
pub(crate) fn check_label(
    title: &str,
    attribute: &'static str,
    text: &str,
    longest: usize,
) -> Result<(), InvalidAttribute> {
    let refuse = |what: String| Err(InvalidAttribute::new(attribute, format!("{title} {what}")));
    if text.trim().is_empty() {
        return refuse("can't be blank".to_owned());
    }
    if text.chars().count() > longest {
        return refuse(format!("is too long (maximum is {longest} characters); it is {}", shown(text)));
    }
    if text.contains(['\n', '\r', '\t']) || !is_plain_text(text) {
        return refuse(format!("may only contain visible characters; it is {}", shown(text)));
    }
    Ok(())
}

/// The form of tag keys and values.
pub(crate) fn check_tag(
    title: &str,
    attribute: &'static str,
    text: &str,
    longest: usize,
) -> Result<(), InvalidAttribute> {
    check_label(title, attribute, text, longest)?;
    let legal = |character: char| character.is_alphanumeric() || "-_.=+@:/ ".contains(character);
    if text.starts_with(' ') || text.ends_with(' ') || !text.chars().all(legal) {
        let detail = format!(
            "{title} may only contain letters, numbers, spaces between them and the characters - _ . = + @ : /; it is {}",
            shown(text)
        );
        return Err(InvalidAttribute::new(attribute, detail));
    }
    Ok(())
}

fn check_email(email: &str) -> Result<(), InvalidAttribute> {
    let refuse = |what: String| Err(InvalidAttribute::new("email", format!("Email {what}")));
    if email.is_empty() {
        return refuse("can't be blank".to_owned());
    }
    let legal = |part: &str| {
        !part.is_empty()
            && part.chars().all(|character| {
                !character.is_whitespace() && !character.is_control() && !"\"(),:;<>[\\]@".contains(character)
            })
    };
    let well_formed = email.len() <= 254
        && is_plain_text(email)
        && email.rsplit_once('@').is_some_and(|(person, host)| legal(person) && legal(host));
    if well_formed { Ok(()) } else { refuse(format!("is invalid: {} does not look like an address", shown(email))) }
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::str::FromStr;

    use super::*;
    use crate::ssh_key::SshKeyName;

    fn refusal<N: FromStr<Err = InvalidAttribute> + fmt::Debug>(name: &str) -> String {
        name.parse::<N>().expect_err(name).detail
    }

    #[test]
    fn legal_names_are_accepted() {
        for name in ["foo", "a-b_c", "741c4949-60b9-5bb1-5bf8-b14f4bb14af3", "FORTY-characters-are-still-short-enough_"]
        {
            name.parse::<OrganizationName>().expect(name);
        }
        for name in ["Default Project", "new project name", "foo-741c4949-60b9-5bb1-5bf8-b14f4bb14af3"] {
            name.parse::<ProjectName>().expect(name);
        }
        for name in ["a", "_a", "0", &"w".repeat(90)] {
            name.parse::<WorkspaceName>().expect(name);
        }
        for name in ["jo", "jane.doe", "NewTestUsername"] {
            name.parse::<Username>().expect(name);
        }
        for key in ["env", "key with spaces", "a:b/c=d+e@f", "größe"] {
            key.parse::<TagKey>().expect(key);
        }
        for email in ["foo@bar.com", "root@localhost", "a.b+c@d-e.f"] {
            email.parse::<Email>().expect(email);
        }
        "my key: for modules".parse::<SshKeyName>().expect("a label");
    }

    #[test]
    fn a_refusal_says_what_is_wrong_and_what_is_allowed() {
        for (name, expected) in [
            ("", "Name can't be blank"),
            ("ab", r#"Name is too short (minimum is 3 characters); it is "ab""#),
            ("a b", r#"Name may only contain letters, numbers, hyphens and underscores; it is "a b""#),
            ("a/b", r#"Name may only contain letters, numbers, hyphens and underscores; it is "a/b""#),
            ("..", r#"Name may only contain letters, numbers, hyphens and underscores; it is "..""#),
            ("-abc", r#"Name must begin with a letter, a number or an underscore; it is "-abc""#),
            ("Admin", r#"Name "Admin" is reserved; choose another"#),
        ] {
            assert_eq!(refusal::<OrganizationName>(name), expected);
        }
        assert!(refusal::<OrganizationName>(&"x".repeat(41)).contains("maximum is 40 characters"));
        assert!(refusal::<WorkspaceName>(&"x".repeat(91)).contains("maximum is 90 characters"));
        assert!(refusal::<Email>("notamailaddress").contains("does not look like an address"));
    }

    #[test]
    fn names_that_could_deceive_are_refused() {
        for name in ["p\u{430}ypal", "a\u{202e}b", "nul\0l", "a:b", "a.b", ".well-known", "a\nb", "-a", "a b", "a/../b"]
        {
            assert!(name.parse::<WorkspaceName>().is_err(), "{name:?}");
            assert!(name.parse::<OrganizationName>().is_err(), "{name:?}");
        }
        for name in [" ab", "ab ", "! / nope", "a\u{a0}b"] {
            assert!(name.parse::<ProjectName>().is_err(), "{name:?}");
        }
        for name in ["", "  ", "a\nb", "a\u{202e}b", &"k".repeat(256)] {
            assert!(name.parse::<SshKeyName>().is_err(), "{name:?}");
        }
        for email in ["", "@", "a@", "@b", "a b@c", "a@b\n", "a@b@c", "<a@b>", &format!("{}@b", "a".repeat(260))] {
            assert!(email.parse::<Email>().is_err(), "{email:?}");
        }
        for key in ["", " a", "a ", "a<b>", "a\u{202e}", &"k".repeat(129)] {
            assert!(key.parse::<TagKey>().is_err(), "{key:?}");
        }
    }

    #[test]
    fn names_that_differ_in_case_are_the_same() {
        let upper: OrganizationName = "Acme".parse().expect("legal");
        let lower: OrganizationName = "acme".parse().expect("legal");
        assert_ne!(upper, lower);
        assert_eq!(upper.key(), lower.key());
    }

    #[test]
    fn a_stored_name_is_read_as_it_is() {
        let old: WorkspaceName = serde_json::from_str(r#""legal.once""#).expect("a name");
        assert_eq!(old.as_str(), "legal.once");
    }
}
