//! A server without any password set, and browsers that look at it.

use harness::browser::Browser;
use harness::home::{Home, ServerProcess};
use reqwest::Client;

pub(crate) struct Site {
    _home: Home,
    pub(crate) server: ServerProcess,
    /// The path of a link that sets the first admin's password.
    pub(crate) link: String,
}

impl Site {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    pub(crate) fn start_with(variables: &[(&str, &str)]) -> Self {
        let home = Home::default();
        let mut command = home.taco(&["server"]);
        let server = ServerProcess::start(command.env("TACO_LISTEN", "127.0.0.1:0").envs(variables.iter().copied()));
        let link = home.setup_link(variables);
        Self { _home: home, server, link }
    }

    pub(crate) fn browser(&self) -> Browser {
        Browser::at(format!("http://{}", self.server.address), Client::builder())
    }

    /// A browser in which the admin is logged in.
    pub(crate) async fn admin(&self) -> Browser {
        let browser = self.browser();
        browser.set_password(&self.link).await;
        browser
    }
}
