//! Addresses of instances, step by step.

/// The address without what is in brackets: `module.a["x"].data.y.z` becomes `module.a.data.y.z`.
pub(super) fn without_indexes(address: &str) -> String {
    steps(address).map(|(name, _)| name).collect::<Vec<_>>().join(".")
}

/// Steps of an address: each name with its index.
fn steps(address: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = address;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (mut in_quotes, mut escaped, mut depth, mut end) = (false, false, 0_usize, rest.len());
        for (at, byte) in rest.bytes().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_quotes => escaped = true,
                b'"' if depth > 0 => in_quotes = !in_quotes,
                b'[' if !in_quotes => depth += 1,
                b']' if !in_quotes => depth = depth.saturating_sub(1),
                b'.' if depth == 0 => {
                    end = at;
                    break;
                }
                _ => {}
            }
        }
        let step = &rest[..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        Some(step.find('[').map_or((step, ""), |at| step.split_at(at)))
    })
}

/// Dependencies have no indexes of modules. Instances of one module cannot depend on each other, so that the data block is
/// that of the user's own instance.
pub(super) fn may_use(user: &str, data: &str) -> bool {
    let (mut user, mut data) = (steps(user), steps(data));
    loop {
        match (user.next(), data.next()) {
            (Some(("module", _)), Some(("module", _))) => {
                let (Some(one), Some(other)) = (user.next(), data.next()) else { return true };
                if one.0 != other.0 {
                    return true;
                }
                if one.1 != other.1 {
                    return false;
                }
            }
            _ => return true,
        }
    }
}

/// The index at the end of an address, with its brackets; empty if there is none.
pub(super) fn last_index(address: &str) -> &str {
    steps(address).last().map_or("", |(_, index)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_fall_into_steps() {
        let address = r#"module.a["x.y[\"]"].module.b[0].data.t.n"#;
        let found: Vec<_> = steps(address).collect();
        assert_eq!(
            found,
            [("module", ""), ("a", r#"["x.y[\"]"]"#), ("module", ""), ("b", "[0]"), ("data", ""), ("t", ""), ("n", ""),]
        );
        assert_eq!(without_indexes(address), "module.a.module.b.data.t.n");
        assert_eq!((last_index(address), last_index(r#"a.b["c.d"]"#)), ("", r#"["c.d"]"#));
    }

    #[test]
    fn instances_of_a_module_use_their_own_data() {
        for (user, data, expected) in [
            ("t.n", "data.t.n", true),
            ("module.m.t.n", "data.t.n", true),
            (r#"module.m["a"].t.n"#, r#"module.m["a"].data.t.n"#, true),
            (r#"module.m["a"].t.n"#, r#"module.m["b"].data.t.n"#, false),
            (r#"module.o["a"].t.n"#, r#"module.m["b"].data.t.n"#, true),
            ("module.m[0].module.x[1].t.n", "module.m[0].module.x[0].data.t.n", false),
            ("t.n", r#"module.m["b"].data.t.n"#, true),
        ] {
            assert_eq!(may_use(user, data), expected, "{user} and {data}");
        }
    }
}
