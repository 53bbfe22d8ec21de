//! Preview of importing variables from a file: shown first, and only what was shown is applied.

use std::collections::BTreeMap;

use crate::attribute::{InvalidAttribute, shown};
use crate::variable::{Variable, VariableCategory, VariablePatch};
use crate::variable_file::{FileVariable, VariableFormat};

/// Change to one variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImportChange {
    New,
    Changed,
    /// It is sensitive, so it is unknown whether it has this value already.
    Replaced,
    Same,
}

/// One variable of a file, with the existing one of the same key.
#[derive(Clone, Debug)]
pub struct PlannedVariable<'a> {
    pub file: FileVariable,
    pub category: VariableCategory,
    pub sensitive: bool,
    pub before: Option<&'a Variable>,
    pub change: ImportChange,
}

impl PlannedVariable<'_> {
    /// The request that brings it about.
    pub fn patch(&self) -> VariablePatch {
        let category = match self.category {
            VariableCategory::Terraform => "terraform",
            VariableCategory::Env => "env",
        };
        VariablePatch {
            key: Some(self.file.key.clone()),
            value: Some(Some(self.file.value.clone())),
            description: None,
            category: Some(category.to_owned()),
            hcl: Some(self.file.hcl),
            // Absent, it stays as it is: what is sensitive cannot be made readable.
            sensitive: self.sensitive.then_some(true),
        }
    }
}

/// Changes that a file would make to `existing`, which are all variables of one owner, in the order of the file.
pub fn plan_import<'a>(
    existing: impl IntoIterator<Item = &'a Variable>,
    format: VariableFormat,
    file: Vec<FileVariable>,
    sensitive: bool,
) -> Result<Vec<PlannedVariable<'a>>, InvalidAttribute> {
    let category = format.category();
    let existing = existing.into_iter().filter(|variable| variable.category == category);
    let existing: BTreeMap<&str, &Variable> = existing.map(|variable| (variable.key.as_str(), variable)).collect();
    let mut seen = BTreeMap::new();
    for variable in &file {
        if seen.insert(variable.key.as_str(), ()).is_some() {
            let detail = format!("{} is there twice: leave one of them out", shown(&variable.key));
            return Err(InvalidAttribute::new("text", detail));
        }
    }
    let planned = file.into_iter().map(|file| {
        let before = existing.get(file.key.as_str()).copied();
        let change = match before {
            None => ImportChange::New,
            Some(before) if before.sensitive() => ImportChange::Replaced,
            Some(before) if before.shown_value() != Some(&file.value) || before.hcl != file.hcl || sensitive => {
                ImportChange::Changed
            }
            Some(_) => ImportChange::Same,
        };
        let sensitive = sensitive || before.is_some_and(Variable::sensitive);
        PlannedVariable { file, category, sensitive, before, change }
    });
    Ok(planned.collect())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::id::{OrganizationId, VariableId, WorkspaceId};
    use crate::variable::{StoredValue, VariableOwner};

    fn variable(key: &str, value: StoredValue, category: VariableCategory) -> Variable {
        let prefix = OrganizationId::from_random([7; 16]).organization_prefix();
        Variable {
            id: VariableId::derived(prefix, key),
            owner: VariableOwner::Workspace(WorkspaceId::within(prefix, [1; 16])),
            key: key.to_owned(),
            value,
            description: String::new(),
            category,
            hcl: false,
            version: 1,
            created_at: Timestamp::UNIX_EPOCH,
        }
    }

    fn plan(existing: &[Variable], text: &str, sensitive: bool) -> Vec<(String, ImportChange, bool)> {
        let file = VariableFormat::Env.parse(text).expect("legal");
        let planned = plan_import(existing, VariableFormat::Env, file, sensitive).expect("legal");
        planned.into_iter().map(|row| (row.file.key, row.change, row.sensitive)).collect()
    }

    #[test]
    fn what_is_new_and_what_changes_is_told_apart() {
        let plain = |text: &str| StoredValue::Plain(text.to_owned());
        let existing = [
            variable("SAME", plain("1"), VariableCategory::Env),
            variable("OTHER", plain("1"), VariableCategory::Env),
            variable("SECRET", StoredValue::Sealed("x".to_owned()), VariableCategory::Env),
            variable("NEW", plain("1"), VariableCategory::Terraform),
        ];
        let text = "NEW=1\nSECRET=1\nOTHER=2\nSAME=1\n";
        let row = |key: &str, change, sensitive| (key.to_owned(), change, sensitive);
        let expected = [
            row("NEW", ImportChange::New, false),
            row("SECRET", ImportChange::Replaced, true),
            row("OTHER", ImportChange::Changed, false),
            row("SAME", ImportChange::Same, false),
        ];
        assert_eq!(plan(&existing, text, false), expected);
        let sealed = plan(&existing, "SAME=1\nNEW=1", true);
        assert_eq!(sealed, [row("SAME", ImportChange::Changed, true), row("NEW", ImportChange::New, true)]);
    }

    #[test]
    fn a_key_that_is_there_twice_is_refused() {
        let file = VariableFormat::Env.parse("A=1\nB=2\nA=s3cr3t\n").expect("legal");
        let refusal = plan_import([], VariableFormat::Env, file, false).expect_err("twice").to_string();
        assert!(refusal.contains("\"A\"") && !refusal.contains("s3cr3t"), "{refusal}");
    }
}
