//! Addresses of resources, as `-target` and `-replace` take them. What exists, the engine finds out; what cannot be an
//! address is refused before a run begins.

use crate::attribute::{InvalidAttribute, shown};

const MAX_ADDRESS_BYTES: usize = 1000;

/// Kind of thing that an address may name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Addressed {
    /// A resource, one of its instances, or a module.
    Target,
    /// A managed resource, or one of its instances.
    Replace,
}

/// Refuses what no engine would take.
pub fn check_address(attribute: &'static str, address: &str, addressed: Addressed) -> Result<(), InvalidAttribute> {
    let example = match addressed {
        Addressed::Target => r#"such as module.network, aws_instance.web[0] or module.app["a"].aws_instance.web"#,
        Addressed::Replace => r#"such as aws_instance.web[0] or module.app["a"].aws_instance.web"#,
    };
    let legal = address.len() <= MAX_ADDRESS_BYTES
        && steps(address).is_some_and(|steps| names_something(&steps, addressed == Addressed::Target));
    if legal {
        return Ok(());
    }
    Err(InvalidAttribute::new(attribute, format!("{} is no address of a resource {example}", shown(address))))
}

/// The names of an address without their indexes; `None` where it is malformed.
fn steps(address: &str) -> Option<Vec<&str>> {
    let mut steps = Vec::new();
    let mut rest = address;
    loop {
        let end = rest.find(|character: char| !is_name_character(character)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let begins_well = name.starts_with(|first: char| first.is_alphabetic() || first == '_');
        if !begins_well {
            return None;
        }
        steps.push(name);
        rest = if after.starts_with('[') { after_index(after)? } else { after };
        match rest.strip_prefix('.') {
            Some(more) => rest = more,
            None if rest.is_empty() => return Some(steps),
            None => return None,
        }
    }
}

fn is_name_character(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-')
}

/// Rest of the text after `[0]` or `["key"]`.
fn after_index(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('[')?;
    let Some(quoted) = inside.strip_prefix('"') else {
        let (digits, rest) = inside.split_once(']')?;
        let number = !digits.is_empty() && digits.len() <= 10 && digits.bytes().all(|digit| digit.is_ascii_digit());
        return number.then_some(rest);
    };
    let mut escaped = false;
    for (at, character) in quoted.char_indices() {
        match character {
            _ if character.is_control() => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return quoted[at + 1..].strip_prefix(']'),
            _ => {}
        }
    }
    None
}

fn names_something(steps: &[&str], any: bool) -> bool {
    let mut rest = steps;
    while let ["module", _, more @ ..] = rest {
        rest = more;
    }
    match rest {
        [] => any && !steps.is_empty(),
        ["module"] => false,
        ["data", _, _] => any,
        [kind, _] => *kind != "data",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_anything_else() {
        for address in [
            "aws_instance.web",
            "aws_instance.web[0]",
            r#"module.app["a.b]\"c"].aws_instance.web["x"]"#,
            "module.a.module.b.null_resource.x-y",
        ] {
            check_address("target-addrs", address, Addressed::Target).expect(address);
            check_address("replace-addrs", address, Addressed::Replace).expect(address);
        }
        for address in ["module.network", "module.network[3]", "data.aws_ami.x", "module.a.data.aws_ami.x"] {
            check_address("target-addrs", address, Addressed::Target).expect(address);
            check_address("replace-addrs", address, Addressed::Replace).expect_err(address);
        }
        for address in [
            "",
            ".",
            "web",
            "aws_instance.",
            "aws_instance.web[",
            "aws_instance.web[]",
            "aws_instance.web[x]",
            r#"aws_instance.web["x]"#,
            "aws_instance.web[0]x",
            "aws instance.web",
            "0.web",
            "module",
            "module.a.b",
            "data.x",
            "a.b.c",
            "-target=x.y",
            "x.y\nz",
        ] {
            let refusal = check_address("target-addrs", address, Addressed::Target).expect_err(address);
            assert_eq!(refusal.attribute, "target-addrs");
        }
    }
}
