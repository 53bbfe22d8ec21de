//! What was wrong with a form, and with which of its fields.

use taco_control_plane::Error;

use crate::error::PageError;
use crate::text;

/// Nothing, or what a page that shows a form again says about it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Problem {
    /// As the API spells it, such as `terraform-version`.
    attribute: String,
    pub(crate) detail: String,
}

impl Problem {
    /// What whoever filled the form can mend; any other error has a page of its own.
    pub(crate) fn of(error: Error) -> Result<Self, PageError> {
        match error {
            Error::Invalid { pointer, detail } => {
                let attribute = pointer.rsplit('/').next().unwrap_or_default().to_owned();
                Ok(Self { attribute, detail: text::plain(&detail) })
            }
            other => Err(other.into()),
        }
    }

    /// Whether it is about this field.
    pub(crate) fn at(&self, attribute: &str) -> bool {
        !self.detail.is_empty() && self.attribute == attribute
    }

    /// Whether there is one that is about none of these fields.
    pub(crate) fn beside(&self, attributes: &[&str]) -> bool {
        !self.detail.is_empty() && !attributes.contains(&self.attribute.as_str())
    }

    pub(crate) fn is_there(&self) -> bool {
        !self.detail.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_knows_its_field() {
        let problem = Problem::of(Error::invalid("name", "Name can't be blank")).expect("one to mend");
        assert!(problem.is_there() && problem.at("name") && !problem.at("email"));
        assert!(problem.beside(&["email"]) && !problem.beside(&["email", "name"]));
        assert!(!Problem::default().is_there() && !Problem::default().at("") && !Problem::default().beside(&[]));
        assert!(Problem::of(Error::NotFound("workspace")).is_err(), "nothing to mend");
    }
}
