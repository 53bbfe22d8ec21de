//! Files of a run's configuration, where its plan alone does not tell which outputs it uses.

use std::io::{BufReader, Read};

use taco_boxed::boxed;
use taco_configuration_archive::{LIMITS, texts};
use taco_domain::graph::local_references::{LocalReferences, MAX_FILE_BYTES, path_from};
use taco_domain::run::Run;

use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;

#[boxed]
impl ControlPlane {
    /// Local values of a run's configuration, seen from the directory where it is run; none of them if it is gone.
    pub(crate) async fn local_references(
        &self,
        org: &OrganizationSnapshot,
        run: &Run,
    ) -> Result<LocalReferences, Error> {
        let version = org.state.configuration_versions.get(&run.configuration_version);
        let Some(version) = version.filter(|version| version.is_usable() && !version.blob.is_empty()) else {
            return Ok(LocalReferences::default());
        };
        let workspace = org.state.workspaces.get(&run.workspace);
        let directory = workspace.map(|workspace| workspace.working_directory.clone()).unwrap_or_default();
        let download = match self.read_archive(org, version).await {
            Ok(download) => download,
            Err(Error::Corrupt(_)) => return Ok(LocalReferences::default()),
            Err(error) => return Err(error),
        };
        let read = move |packed: Box<dyn Read + Send>| {
            let mut locals = LocalReferences::default();
            let one_too_many = MAX_FILE_BYTES as u64 + 1;
            let walked = texts(BufReader::new(packed), LIMITS, one_too_many, LocalReferences::wants, |path, text| {
                locals.add_file(&path_from(&directory, path), text);
            });
            walked.map(|()| locals)
        };
        match self.read_download_with(download, read).await {
            // What cannot be read tells nothing. Its runs fail, and say why.
            Ok(read) => Ok(read.unwrap_or_default()),
            Err(Error::Corrupt(_)) => Ok(LocalReferences::default()),
            Err(error) => Err(error),
        }
    }
}
