//! A site with something to see on every page.

use std::collections::BTreeMap;

use taco_domain::grant::challenge_of;

use crate::browser::PASSWORD;
use crate::chromium::Chromium;
use crate::installation::{Installation, Transport};
use crate::pages::Page;

pub struct Gallery {
    pub installation: Installation,
    /// What the words in braces stand for in addresses.
    words: BTreeMap<&'static str, String>,
}

impl Gallery {
    pub async fn open() -> Self {
        Self::bare().await
    }

    /// A site on which nobody did anything yet.
    pub async fn bare() -> Self {
        let installation = Installation::with_engines(Transport::Http);
        let challenge = challenge_of("0e2ee2c2-43a5-4e6f-9d04-a3eb4c9d1c11.123456789");
        let consent = format!(
            "client_id=terraform-cli&response_type=code&state=x&redirect_uri=http://localhost:10000/login\
             &code_challenge_method=S256&code_challenge={challenge}"
        );
        let words = BTreeMap::from([("setup", installation.setup_link()), ("consent", consent)]);
        Self { installation, words }
    }

    /// Where a page is.
    pub fn address(&self, page: &Page) -> String {
        let mut address = page.address.to_owned();
        for (word, meaning) in &self.words {
            address = address.replace(&format!("{{{word}}}"), meaning);
        }
        assert!(!address.contains('{'), "the gallery has nothing for {address}");
        address
    }

    pub async fn browser(&self) -> Chromium {
        Chromium::at(&self.installation.origin).await
    }

    /// The first admin sets a password, which logs them in.
    pub async fn let_in(&self, chromium: &Chromium) {
        chromium.goes_to(&self.installation.setup_link()).await;
        chromium.types("[name=password]", PASSWORD).await;
        chromium.types("[name=repeated]", PASSWORD).await;
        chromium.clicks("main button").await;
        assert_eq!(chromium.place().await, "/app");
    }
}
