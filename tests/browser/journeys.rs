//! User journeys from the first click to the last, with scripts and without.

mod agent_pool;
mod live;
mod rights;
mod run;
mod runs_again;
mod shell;
mod tokens;
mod variables;

use harness::chromium::{Chromium, Scripts};
use harness::sample_site::SampleSite;

/// Lets a journey be told with scripts and without.
macro_rules! told_with_and_without_scripts {
    ($($journey:ident),* $(,)?) => { $(
        mod $journey {
            use harness::chromium::Scripts;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn with_scripts() {
                super::$journey(super::super::begin(Scripts::Run).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn without_scripts() {
                super::$journey(super::super::begin(Scripts::Blocked).await).await;
            }
        }
    )* };
}

pub(crate) use told_with_and_without_scripts;

/// A fresh site, and the browser of its admin, who is logged in.
pub(crate) struct Journey {
    pub(crate) sample_site: SampleSite,
    pub(crate) admin: Chromium,
    pub(crate) scripts: Scripts,
}

async fn begin(scripts: Scripts) -> Journey {
    let sample_site = SampleSite::bare().await;
    let admin = Chromium::start(&sample_site.installation.origin, scripts).await;
    sample_site.log_in(&admin).await;
    Journey { sample_site, admin, scripts }
}

impl Journey {
    /// Makes the organization `acme` and in it a workspace, of which the server's own agent executes the runs.
    pub(crate) async fn makes_workspace(&self, name: &str) {
        let admin = &self.admin;
        admin.goes_to("/app/organizations").await;
        admin.presses("New organization").await;
        admin.types("#name", "acme").await;
        admin.types("#email", "ops@acme.test").await;
        admin.presses("Create organization").await;
        admin.arrives_at("/app/acme").await;
        admin.follows("Workspaces").await;
        admin.presses("New workspace").await;
        admin.types("#name", name).await;
        admin.clicks("#execution-mode option[value=remote]").await;
        admin.presses("Create workspace").await;
        admin.arrives_at(&format!("/app/acme/workspaces/{name}")).await;
    }

    /// Nothing went wrong that only the console tells.
    pub(crate) async fn ends(self) {
        assert_eq!(self.admin.complaints().await, Vec::<String>::new());
    }
}
