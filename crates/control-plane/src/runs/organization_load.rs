//! How busy an organization is, and was since this server started.

use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::load_samples::LoadSample;
use crate::privileged::Privileged;

impl Privileged {
    /// Notes how busy these organizations are, all that there are, unless that was done within the last minute.
    pub fn sample_load(&self, organizations: &[OrganizationSnapshot]) {
        let (now, agents) = (self.now(), self.presence().agents());
        let sample = |org: &OrganizationSnapshot| LoadSample::of(&org.last_seen(), &agents, now);
        self.shared.load_samples.note(now, organizations, OrganizationSnapshot::id, sample);
    }
}

impl ControlPlane {
    /// How busy an organization was since this server started, a sample a minute, the oldest first; the last one is of
    /// this moment.
    pub fn load_samples(&self, caller: &Caller, org: &OrganizationSnapshot) -> Vec<LoadSample> {
        let now = LoadSample::of(&org.state, &self.presence().agents(), self.now());
        let sees_all = caller.reads_all_runs(&org.state);
        let shown = |sample: LoadSample| LoadSample { waiting: sample.waiting.filter(|_| sees_all), ..sample };
        self.shared.load_samples.of(org.id()).into_iter().chain([now]).map(shown).collect()
    }
}
