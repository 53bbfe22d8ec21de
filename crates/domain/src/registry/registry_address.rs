//! Names in the addresses of modules and providers. What the engines could not call is refused when it is made.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::attribute::{InvalidAttribute, shown};
use crate::name::name_kinds;

const LONGEST: usize = 64;

/// Where something comes from: it was published here, or it is a note of what a public registry has.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum RegistryName {
    Private,
    Public,
}

impl RegistryName {
    pub fn word(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Public => "public",
        }
    }
}

impl FromStr for RegistryName {
    type Err = InvalidAttribute;

    fn from_str(text: &str) -> Result<Self, InvalidAttribute> {
        match text {
            "private" => Ok(Self::Private),
            "public" => Ok(Self::Public),
            _ => Err(InvalidAttribute::new("registry-name", "Registry name is not included in the list")),
        }
    }
}

name_kinds! {
    /// The second part of a module's address.
    ModuleName: |name| check("Name", "name", name, true, "-_");

    /// The third part of a module's address: the system that it is for, such as `aws`.
    ModuleProvider: |name| check("Provider", "provider", name, false, "");

    /// The last part of a provider's address, such as `aws`.
    ProviderName: |name| check("Name", "name", name, true, "-_");

    /// The first part of an address in a public registry. In the private one it is the organization's name.
    Namespace: |name| check("Namespace", "namespace", name, true, "-_");
}

fn check(
    title: &str,
    attribute: &'static str,
    name: &str,
    upper_case: bool,
    others: &str,
) -> Result<(), InvalidAttribute> {
    let refuse = |what: String| Err(InvalidAttribute::new(attribute, format!("{title} {what}")));
    if name.is_empty() {
        return refuse("can't be blank".to_owned());
    }
    let is_letter = |character: char| {
        character.is_ascii_digit() || character.is_ascii_lowercase() || (upper_case && character.is_ascii_uppercase())
    };
    if !name.chars().all(|character| is_letter(character) || others.contains(character)) {
        let allowed = match (upper_case, others) {
            (_, "") => "lower-case letters and numbers",
            _ => "letters, numbers, hyphens and underscores",
        };
        return refuse(format!("may only contain {allowed}; it is {}", shown(name)));
    }
    if name.len() > LONGEST {
        return refuse(format!("is too long (maximum is {LONGEST} characters); it has {}", name.len()));
    }
    if !(name.starts_with(is_letter) && name.ends_with(is_letter)) {
        return refuse(format!("must begin and end with a letter or a number; it is {}", shown(name)));
    }
    Ok(())
}

/// An address of a module in a registry, as configurations write it: `HOST/NAMESPACE/NAME/PROVIDER`, with or without a
/// submodule behind `//`. The host is in lower case.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ModuleSource {
    pub host: String,
    pub namespace: String,
    pub name: String,
    pub provider: String,
}

impl ModuleSource {
    /// The address in a source; `None` for one of another kind, and for one without a host: that is of a public registry.
    pub fn parse(source: &str) -> Option<Self> {
        let address = source.split_once("//").map_or(source, |(address, _)| address);
        let mut parts = address.split('/');
        let (host, namespace, name, provider) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_host = host.contains('.') || host.contains(':') || host == "localhost";
        let is_plain = |part: &str| part.parse::<Namespace>().is_ok();
        let fits = is_host && parts.next().is_none() && [namespace, name, provider].into_iter().all(is_plain);
        fits.then(|| Self {
            host: host.to_lowercase(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            provider: provider.to_owned(),
        })
    }

    /// The address without its host, in lower case: `namespace/name/provider`.
    pub fn key(&self) -> String {
        format!("{}/{}/{}", self.namespace, self.name, self.provider).to_lowercase()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_engines_cannot_call_is_refused() {
        for name in ["vpc", "a", "another_name", "with-hyphen", "UPPER1"] {
            assert!(name.parse::<ModuleName>().is_ok(), "{name}");
        }
        for name in ["", "-a", "a-", "a b", "a.b", "ä", "x/y", &"x".repeat(65)] {
            assert!(name.parse::<ModuleName>().is_err(), "{name}");
        }
        assert!("aws".parse::<ModuleProvider>().is_ok());
        let refused = "AWS".parse::<ModuleProvider>().expect_err("upper case");
        assert_eq!(refused.detail, r#"Provider may only contain lower-case letters and numbers; it is "AWS""#);
        assert!("my-system".parse::<ModuleProvider>().is_err());
    }

    #[test]
    fn an_address_with_a_host_is_one_of_a_registry() {
        let parsed = |text| ModuleSource::parse(text).map(|it| (it.host, it.name));
        let expected = |host: &str| Some((host.to_owned(), "vpc".to_owned()));
        assert_eq!(parsed("Taco.Acme.test/acme/vpc/aws"), expected("taco.acme.test"));
        assert_eq!(parsed("localhost:8443/acme/vpc/aws//modules/subnet"), expected("localhost:8443"));
        for other in [
            "acme/vpc/aws",
            "./modules/vpc",
            "../a.b/c/d/e",
            "git::https://github.com/x/y.git",
            "github.com/hashicorp/example",
            "https://example.com/a/b/c",
            "example.com/a/b/c/d",
            "",
        ] {
            assert_eq!(parsed(other), None, "{other}");
        }
    }
}
