//! The files of a plan, in the forms that agents send. They are stored under keys of the attempt, so that a repeated
//! upload writes over the first; what counts is what was there when the plan ended. The commit of its outcome notes
//! each form's digest, and later reads return those bytes or none: what is applied is what people looked at.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use sha2::{Digest, Sha256};
use taco_domain::id::RunId;
use taco_domain::phase::StoredFile;
use taco_domain::phase_attempt::PhaseAttempt;
use taco_domain::run::Run;
use taco_ledger::blob::Stored;
use taco_ledger::bucket::Download;
use taco_ledger::{BucketError, BucketErrorKind, Key, LedgerName, layout};

use crate::blob_error::blob_error;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::uploaded_plans::{Files, PlanForm};

/// Key in the bucket of a file that belongs to a plan.
pub(crate) fn plan_key(org: &OrganizationSnapshot, form: PlanForm, run: RunId, epoch: u64) -> Key {
    plan_key_in(org.ledger.name(), form, run, epoch)
}

pub(crate) fn plan_key_in(ledger: &LedgerName, form: PlanForm, run: RunId, epoch: u64) -> Key {
    layout::blob(ledger, form.blobs(), &format!("{}-{epoch}", run.characters()))
}

impl ControlPlane {
    /// The forms of a plan that have arrived, for the commit that ends it.
    pub(crate) async fn files_of_plan(
        &self,
        org: &OrganizationSnapshot,
        attempt: PhaseAttempt,
    ) -> Result<Files, Error> {
        let known = self.shared.uploaded_plans.take(attempt);
        // Another server may have taken some of them.
        let missing: Vec<PlanForm> =
            PlanForm::ALL.into_iter().filter(|form| !known.contains_key(form.blobs())).collect();
        let looking = stream::iter(missing).map(|form| async move {
            let key = plan_key(org, form, attempt.run, attempt.epoch);
            Ok::<_, Error>(self.measured(&key).await?.map(|file| (form.blobs().to_owned(), file)))
        });
        let found: Vec<Option<(String, StoredFile)>> = looking.buffered(PlanForm::ALL.len()).try_collect().await?;
        Ok(known.into_iter().chain(found.into_iter().flatten()).collect())
    }

    async fn measured(&self, key: &Key) -> Result<Option<StoredFile>, Error> {
        let found = self.blobs().read(key, None).await.map_err(|error| blob_error(error.into()))?;
        let Some(mut download) = found else { return Ok(None) };
        let mut hash = Sha256::new();
        while let Some(piece) = download.body.try_next().await.map_err(|error| blob_error(error.into()))? {
            hash.update(&piece);
        }
        let sha256 = hex::encode(hash.finalize());
        Ok(Some(StoredFile { size: download.size, sha256 }))
    }

    /// A plan in one of its forms, as it was when the plan ended; `None` where it has no such form. If it is not that any
    /// more, its stream ends in an error.
    pub(crate) async fn plan_file(
        &self,
        org: &OrganizationSnapshot,
        run: &Run,
        form: PlanForm,
    ) -> Result<Option<Download>, Error> {
        let key = plan_key(org, form, run.id, run.plan.epoch);
        let Some(files) = &run.plan.files else {
            // It failed, or ended before digests were noted.
            return self.blobs().read(&key, None).await.map_err(|error| blob_error(error.into()));
        };
        let Some(file) = files.get(form.blobs()) else { return Ok(None) };
        let stored = Stored { size: file.size, sha256: file.sha256.clone(), md5: String::new() };
        self.blobs().read_compared(&key, &stored).await.map(Some).map_err(blob_error)
    }

    /// The engine's plan file, for the apply. All of it is read before the first byte goes out: an agent that gets half
    /// of a file asks again, for as long as the apply may take.
    pub(crate) async fn plan_to_apply(&self, org: &OrganizationSnapshot, run: &Run) -> Result<Download, Error> {
        let changed = || Error::Invalid {
            pointer: String::new(),
            detail: "The plan is not the one that was made and looked at: nothing was applied; plan again".to_owned(),
        };
        let read = || async {
            let file = self.plan_file(org, run, PlanForm::File).await;
            file.map_err(|error| if matches!(error, Error::Corrupt(_)) { changed() } else { error })
        };
        let Some(mut whole) = read().await? else { return Err(Error::NotFound("object")) };
        let judged = |error: BucketError| match error.kind {
            BucketErrorKind::Refused => changed(),
            _ => blob_error(error.into()),
        };
        while whole.body.try_next().await.map_err(judged)?.is_some() {}
        read().await?.ok_or(Error::NotFound("object"))
    }
}
