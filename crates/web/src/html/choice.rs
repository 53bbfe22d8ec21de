//! Options that a form lets people choose from.

/// One option.
pub(crate) struct Choice {
    pub(crate) value: String,
    pub(crate) name: String,
    pub(crate) chosen: bool,
}

impl Choice {
    pub(crate) fn new(value: impl ToString, name: impl ToString, chosen: &str) -> Self {
        let value = value.to_string();
        Self { chosen: value == chosen, value, name: name.to_string() }
    }
}
