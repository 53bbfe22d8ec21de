//! Variables from a file: first what they would change, then all of them in one commit, unless something has changed
//! meanwhile.

use serde::{Deserialize, Serialize};
use taco_boxed::boxed;
use taco_domain::id::VariableId;
use taco_domain::variable::{Variable, VariableCategory, VariableOwner, VariablePatch};
use taco_domain::variable_file::VariableFormat;
use taco_domain::variable_import::{ImportChange, plan_import};

use crate::bindings::check_not_bound;
use crate::caller::Caller;
use crate::change::Tx;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::variables::{Prepared, check_room, require_read, require_write};

/// Limit for the size of a file; a larger one is no file of variables.
const MAX_FILE_BYTES: usize = 256 * 1024;

/// Request to import variables.
#[derive(Clone, Serialize, Deserialize)]
pub struct VariableImport {
    pub format: VariableFormat,
    pub text: String,
    /// True if the values are not to be shown again.
    pub sensitive: bool,
}

/// Preview of an import.
#[derive(Clone)]
pub struct ImportPreview {
    pub rows: Vec<PreviewedVariable>,
    /// Argument of [`ControlPlane::import_variables`]: the request and what it was compared with, sealed. The values
    /// can travel through a browser in it without being shown.
    pub sealed: String,
}

/// One variable of a preview.
#[derive(Clone)]
pub struct PreviewedVariable {
    pub key: String,
    pub category: VariableCategory,
    pub hcl: bool,
    pub change: ImportChange,
    /// `None` where it is sensitive; so is the one before.
    pub value: Option<String>,
    pub value_before: Option<String>,
}

/// The request, and the version of each variable that it was compared with.
#[derive(Serialize, Deserialize)]
struct Confirmation {
    import: VariableImport,
    compared_with: Vec<Option<(VariableId, u64)>>,
}

/// One variable to write, with everything that needed randomness.
struct Write {
    change: ImportChange,
    patch: VariablePatch,
    before: Option<(VariableId, u64)>,
    /// The new variable, or what the old one's value is when sealed.
    new: Option<Variable>,
    sealed: Option<(String, String)>,
}

#[boxed]
impl ControlPlane {
    pub async fn preview_import(
        &self,
        caller: &Caller,
        owner: VariableOwner,
        import: VariableImport,
    ) -> Result<ImportPreview, Error> {
        let org = self.organization_of_owner(caller, owner).await?;
        require_write(caller, &org.state, owner)?;
        require_read(caller, &org.state, owner)?;
        let (rows, writes) = self.planned(&org, owner, &import)?;
        let compared_with = writes.into_iter().map(|write| write.before).collect();
        let confirmation = serde_json::to_string(&Confirmation { import, compared_with }).expect("plain data");
        Ok(ImportPreview { rows, sealed: self.seal(&seal_name(caller, owner), &confirmation) })
    }

    /// Does what a preview has shown. Returns how many variables were written.
    pub async fn import_variables(&self, caller: &Caller, owner: VariableOwner, sealed: &str) -> Result<usize, Error> {
        let mut org = self.organization_of_owner(caller, owner).await?;
        require_write(caller, &org.state, owner)?;
        let unreadable = || Error::invalid("text", "This preview cannot be read any more: paste the variables again");
        let confirmation = self.unseal(&seal_name(caller, owner), sealed).map_err(|_| unreadable())?;
        let confirmation: Confirmation = serde_json::from_str(&confirmation).map_err(|_| unreadable())?;
        let (_, mut writes) = self.planned(&org, owner, &confirmation.import)?;
        if writes.iter().map(|write| write.before).ne(confirmation.compared_with) {
            return Err(changed_meanwhile());
        }
        writes.retain(|write| write.change != ImportChange::Same);
        let control_plane = self.clone();
        org.change(caller, "variable.import", self.now(), move |tx| {
            require_write(tx.caller(), tx.state(), owner)?;
            writes.iter().try_for_each(|write| control_plane.write(tx, write))?;
            Ok(writes.len())
        })
        .await
    }

    /// Rows to show and changes to write, for each variable of the file.
    fn planned(
        &self,
        org: &OrganizationSnapshot,
        owner: VariableOwner,
        import: &VariableImport,
    ) -> Result<(Vec<PreviewedVariable>, Vec<Write>), Error> {
        if import.text.len() > MAX_FILE_BYTES {
            let detail = format!("This is too much at once: {MAX_FILE_BYTES} bytes are taken; split it");
            return Err(Error::invalid("text", detail));
        }
        let file = import.format.parse(&import.text).map_err(|why| Error::invalid("text", why.to_string()))?;
        if file.is_empty() {
            return Err(Error::invalid("text", "There are no variables in it"));
        }
        let planned = plan_import(org.state.variables_of(owner), import.format, file, import.sensitive)?;
        let mut rows = Vec::new();
        let mut writes = Vec::new();
        for row in planned {
            let patch = row.patch();
            let refused = |error: Error| match error {
                Error::Invalid { detail, .. } => Error::invalid("text", format!("{}: {detail}", row.file.key)),
                other => other,
            };
            let (new, sealed) = match row.before {
                None => (Some(self.new_variable(org, owner, &patch).map_err(refused)?), None),
                Some(before) => {
                    let vault = Prepared::new(self, before.id, &patch, Some(before));
                    patch.apply(before, &vault).map_err(refused)?;
                    (None, vault.sealed)
                }
            };
            let before = row.before.map(|before| (before.id, before.version));
            writes.push(Write { change: row.change, patch, before, new, sealed });
            rows.push(PreviewedVariable {
                category: row.category,
                hcl: row.file.hcl,
                change: row.change,
                value: (!row.sensitive).then(|| row.file.value.clone()),
                value_before: row.before.and_then(Variable::shown_value).map(str::to_owned),
                key: row.file.key,
            });
        }
        Ok((rows, writes))
    }

    fn write(&self, tx: &mut Tx<'_>, write: &Write) -> Result<(), Error> {
        let variable = match (write.before, &write.new) {
            (Some((id, version)), _) => {
                let before = tx.state().variables.get(&id).filter(|before| before.version == version);
                let before = before.ok_or_else(changed_meanwhile)?;
                let vault = Prepared { control_plane: self, id, sealed: write.sealed.clone() };
                write.patch.apply(before, &vault)?
            }
            (None, Some(new)) => {
                check_room(tx.state(), new.owner).map_err(about_text)?;
                check_not_bound(tx.state(), tx.caller(), new.owner, &new.key, new.category).map_err(about_text)?;
                new.clone()
            }
            (None, None) => return Ok(()),
        };
        tx.put_unique(variable).map_err(|_| changed_meanwhile())?;
        Ok(())
    }
}

/// The form of an import has one field.
fn about_text(error: Error) -> Error {
    match error {
        Error::Invalid { detail, .. } => Error::invalid("text", detail),
        other => other,
    }
}

fn changed_meanwhile() -> Error {
    let detail = "The variables have changed since the preview. Nothing was imported: paste them again";
    Error::Conflict(detail.to_owned())
}

/// A preview opens for the one who saw it, and for nothing but these variables.
fn seal_name(caller: &Caller, owner: VariableOwner) -> String {
    match owner {
        VariableOwner::Workspace(id) => format!("variable-import {id} {}", caller.author()),
        VariableOwner::VariableSet(id) => format!("variable-import {id} {}", caller.author()),
    }
}
