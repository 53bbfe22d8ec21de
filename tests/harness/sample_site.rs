//! A site with something to see on every page.

use std::collections::BTreeMap;

use taco_domain::grant::challenge_of;

use crate::api_seed::ApiSeed;
use crate::browser::PASSWORD;
use crate::chromium::Chromium;
use crate::installation::{Installation, Transport};
use crate::pages::Page;
use crate::process::Process;

pub struct SampleSite {
    pub installation: Installation,
    /// Values of the placeholders in braces in addresses.
    words: BTreeMap<&'static str, String>,
    /// Works as long as the sample site is open.
    pub(crate) agent: Option<Process>,
}

impl SampleSite {
    /// A fresh site.
    pub async fn bare() -> Self {
        let installation = Installation::with_engines(Transport::Http);
        let challenge = challenge_of("0e2ee2c2-43a5-4e6f-9d04-a3eb4c9d1c11.123456789");
        let consent = format!(
            "client_id=terraform-cli&response_type=code&state=x&redirect_uri=http://localhost:10000/login\
             &code_challenge_method=S256&code_challenge={challenge}"
        );
        let words = BTreeMap::from([("setup", installation.setup_link()), ("consent", consent)]);
        Self { installation, words, agent: None }
    }

    /// A site where people have worked for a while, and some are still at it.
    pub async fn open() -> Self {
        Self::filled(true).await
    }

    /// The same site, with scripts for the browsers of others in every text that takes them.
    pub async fn poisoned() -> Self {
        Self::filled(false).await
    }

    async fn filled(honest: bool) -> Self {
        let mut sample_site = Self::bare().await;
        for name in ["empty", "labs"] {
            ApiSeed::of_organization(sample_site.installation.admin(), name, honest).await;
        }
        let seed = ApiSeed::of_organization(sample_site.installation.admin(), "acme", honest).await;
        let projects = sample_site.fill_lists(&seed).await;
        sample_site.fill_network(&seed, &projects[0]).await;
        sample_site.fill_workshop(&seed, &projects[1]).await;
        sample_site.fill_graph(&seed).await;
        sample_site.fill_registry(&seed).await;
        sample_site.start_agent(&seed).await;
        sample_site.fill_account(&seed).await;
        sample_site
    }

    pub(crate) fn set_placeholder(&mut self, word: &'static str, meaning: String) {
        self.words.insert(word, meaning);
    }

    /// Value of a placeholder.
    pub fn placeholder(&self, word: &str) -> String {
        self.words.get(word).cloned().unwrap_or_else(|| panic!("the sample site has no {word}"))
    }

    /// Address of a page.
    pub fn address(&self, page: &Page) -> String {
        let mut address = page.address.to_owned();
        for (word, meaning) in &self.words {
            address = address.replace(&format!("{{{word}}}"), meaning);
        }
        assert!(!address.contains('{'), "the sample site has nothing for {address}");
        address
    }

    pub async fn browser(&self) -> Chromium {
        Chromium::at(&self.installation.origin).await
    }

    /// The first admin sets a password, which logs them in.
    pub async fn log_in(&self, chromium: &Chromium) {
        chromium.goes_to(&self.installation.setup_link()).await;
        chromium.types("[name=password]", PASSWORD).await;
        chromium.types("[name=repeated]", PASSWORD).await;
        chromium.clicks("main button").await;
        chromium.arrives_at("/app").await;
    }
}
