//! A real browser: Debian's chromium, driven through its chromedriver as the W3C's WebDriver standard says.
//!
//! WebDriver is JSON over HTTP, of which we need a dozen commands. The crates that speak it bring either copyleft or a
//! feature of `serde_json` that would change what the product itself does in tests.

use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::process::Process;

/// Long enough for a machine that is busy with other tests.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);

/// For a machine that reaches nothing but its own servers.
const FLAGS: [&str; 9] = [
    "--headless",
    // A picture of a long page has no scroll bar, and its content would be laid out under it.
    "--hide-scrollbars",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

/// Key of a reference to an element in the WebDriver standard.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scripts {
    Run,
    Blocked,
}

/// Colour scheme of the visitor's system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Colours {
    Light,
    Dark,
}

impl Colours {
    pub const BOTH: [Self; 2] = [Self::Light, Self::Dark];

    pub fn word(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

pub struct Chromium {
    /// Origin of the site that this browser looks at.
    pub origin: String,
    client: Client,
    /// The address of all commands.
    session: String,
    browser: Pid,
    _driver: Process,
    _profile: TempDir,
}

impl Chromium {
    /// A browser with a fresh profile and scripts.
    pub async fn at(origin: &str) -> Self {
        Self::start(origin, Scripts::Run).await
    }

    pub async fn start(origin: &str, scripts: Scripts) -> Self {
        let (driver, port) = start_driver();
        let profile = tempfile::tempdir().expect("a directory");
        let mut flags: Vec<String> = FLAGS.iter().map(|&flag| flag.to_owned()).collect();
        flags.push(format!("--user-data-dir={}", profile.path().display()));
        flags.push("--window-size=1280,900".to_owned());
        let mut options = json!({ "binary": "/usr/bin/chromium", "args": flags });
        if scripts == Scripts::Blocked {
            options["prefs"] = json!({ "profile.default_content_setting_values.javascript": 2 });
        }
        let wanted = json!({
            "acceptInsecureCerts": true,
            "goog:chromeOptions": options,
            "goog:loggingPrefs": { "browser": "ALL" },
            // In milliseconds, for a machine that is busy with other tests.
            "timeouts": { "script": 180_000 },
        });
        let client = Client::builder().no_proxy().build().expect("a client");
        let address = format!("http://127.0.0.1:{port}/session");
        let wanted = json!({ "capabilities": { "alwaysMatch": wanted } });
        let begun = ask(&client, Method::POST, &address, &wanted).await.unwrap_or_else(|error| panic!("{error}"));
        let id = begun["sessionId"].as_str().expect("a session has an id");
        let browser = begun["capabilities"]["goog:processID"].as_i64().expect("the driver tells the process");
        let browser = Pid::from_raw(browser.try_into().expect("process ids are small"));
        let (session, origin) = (format!("{address}/{id}"), origin.to_owned());
        Self { origin, client, session, browser, _driver: driver, _profile: profile }
    }

    async fn try_to(&self, command: &str, body: &Value) -> Result<Value, String> {
        ask(&self.client, Method::POST, &format!("{}/{command}", self.session), body).await
    }

    async fn tell(&self, command: &str, body: Value) -> Value {
        let answer = self.try_to(command, &body).await;
        answer.unwrap_or_else(|error| panic!("{command} {}: {error}", shortened(&body.to_string())))
    }

    async fn learn(&self, question: &str) -> String {
        let address = format!("{}/{question}", self.session);
        let answer = ask(&self.client, Method::GET, &address, &Value::Null).await;
        answer.unwrap_or_else(|error| panic!("{question}: {error}")).as_str().expect("text").to_owned()
    }

    /// Goes to a path of the site, and waits until the page is loaded.
    pub async fn goes_to(&self, path: &str) {
        self.tell("url", json!({ "url": format!("{}{path}", self.origin) })).await;
    }

    /// Current path and query.
    pub async fn place(&self) -> String {
        let address = self.learn("url").await;
        address.strip_prefix(&self.origin).unwrap_or(&address).to_owned()
    }

    /// Waits until it is at a path that begins so.
    pub async fn arrives_at(&self, path: &str) {
        let deadline = Instant::now() + PAGE_TIMEOUT;
        while !self.place().await.starts_with(path) {
            if Instant::now() > deadline {
                panic!("it is at {} instead of {path}:\n{}", self.place().await, self.text().await);
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    pub async fn title(&self) -> String {
        self.learn("title").await
    }

    /// The page as the browser holds it.
    pub async fn source(&self) -> String {
        self.learn("source").await
    }

    /// Result of a function with this body on the page.
    pub async fn evaluates(&self, body: &str) -> Value {
        self.tell("execute/sync", json!({ "script": body, "args": [] })).await
    }

    /// Result that a function with this body passes to its last argument, sooner or later.
    pub async fn awaits(&self, body: &str) -> Value {
        self.tell("execute/async", json!({ "script": body, "args": [] })).await
    }

    /// All that a visitor can read on the page.
    pub async fn text(&self) -> String {
        self.text_of("body").await
    }

    pub async fn text_of(&self, selector: &str) -> String {
        loop {
            let address = format!("{}/element/{}/text", self.session, self.find(selector).await);
            match ask(&self.client, Method::GET, &address, &Value::Null).await {
                Ok(text) => return text.as_str().expect("text").to_owned(),
                // The page was renewed in between.
                Err(error) if was_renewed(&error) => {}
                Err(error) => panic!("{selector}: {error}"),
            }
        }
    }

    pub async fn shows(&self, selector: &str) -> bool {
        self.look_for("css selector", selector).await.is_some()
    }

    /// Fills a field in, in place of what it holds.
    pub async fn types(&self, selector: &str, text: &str) {
        self.does_to("css selector", selector, &[("clear", json!({})), ("value", json!({ "text": text }))]).await;
    }

    pub async fn clicks(&self, selector: &str) {
        self.does_to("css selector", selector, &[("click", json!({}))]).await;
    }

    /// Follows the first link with this text.
    pub async fn follows(&self, text: &str) {
        self.clicks_on(&format!("//a[normalize-space()={}]", quoted(text))).await;
    }

    /// Presses the first button with this text.
    pub async fn presses(&self, text: &str) {
        self.clicks_on(&format!("//button[normalize-space()={}]", quoted(text))).await;
    }

    async fn clicks_on(&self, path: &str) {
        self.does_to("xpath", path, &[("click", json!({}))]).await;
    }

    /// Tells the driver to do all this to an element, one after the other.
    async fn does_to(&self, by: &str, what: &str, commands: &[(&str, Value)]) {
        'again: loop {
            let element = self.find_by(by, what).await;
            for (command, body) in commands {
                match self.try_to(&format!("element/{element}/{command}"), body).await {
                    Ok(_) => {}
                    // The page was renewed in between.
                    Err(error) if was_renewed(&error) => continue 'again,
                    Err(error) => panic!("{command} {what}: {error}"),
                }
            }
            return;
        }
    }

    /// Waits until the page holds such an element.
    pub async fn find(&self, selector: &str) -> String {
        self.find_by("css selector", selector).await
    }

    async fn find_by(&self, by: &str, what: &str) -> String {
        let deadline = Instant::now() + PAGE_TIMEOUT;
        loop {
            if let Some(element) = self.look_for(by, what).await {
                return element;
            }
            if Instant::now() > deadline {
                panic!("there is no {what} at {}:\n{}", self.place().await, self.source().await);
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn look_for(&self, by: &str, what: &str) -> Option<String> {
        let found = self.try_to("element", &json!({ "using": by, "value": what })).await.ok()?;
        found[ELEMENT].as_str().map(str::to_owned)
    }

    /// Waits until a visitor can read this on the page.
    pub async fn reads(&self, text: &str) {
        let deadline = Instant::now() + PAGE_TIMEOUT;
        while !self.text().await.contains(text) {
            if Instant::now() > deadline {
                panic!("{text:?} does not come at {}:\n{}", self.place().await, self.text().await);
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Asks for pages in these colours from now on, as the visitor's system would.
    pub async fn prefers(&self, colours: Colours) {
        let feature = json!({ "name": "prefers-color-scheme", "value": colours.word() });
        self.devtools("Emulation.setEmulatedMedia", json!({ "features": [feature] })).await;
    }

    /// Shows pages so wide from now on; a narrow one is a phone's.
    pub async fn is_wide(&self, width: u32) {
        let screen = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.devtools("Emulation.setDeviceMetricsOverride", screen).await;
    }

    /// A picture of the page down to its end, or nearly so if it is very long, as PNG.
    pub async fn picture(&self) -> Vec<u8> {
        let page = self.devtools("Page.getLayoutMetrics", json!({})).await;
        let (width, height) = (&page["cssLayoutViewport"]["clientWidth"], &page["cssContentSize"]["height"]);
        let height = height.as_f64().expect("a number").clamp(1.0, 3000.0);
        let clip = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": 1 });
        let options = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let taken = self.devtools("Page.captureScreenshot", options).await;
        STANDARD.decode(taken["data"].as_str().expect("a picture")).expect("base64")
    }

    /// Command that only chromium understands.
    pub async fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.tell("goog/cdp/execute", json!({ "cmd": command, "params": parameters })).await
    }

    /// Console messages since the last call: violations of the policy, failed loads, errors of scripts.
    pub async fn complaints(&self) -> Vec<String> {
        let lines = self.tell("se/log", json!({ "type": "browser" })).await;
        let lines = lines.as_array().expect("a list").iter();
        lines.filter(|line| line["level"] != "INFO").map(|line| line["message"].to_string()).collect()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // It fails if the browser has ended, which is fine. Its other processes end with it.
        kill(self.browser, Signal::SIGKILL).ok();
    }
}

/// The driver and its port.
fn start_driver() -> (Process, String) {
    loop {
        let driver = Process::start(Command::new("chromedriver").arg("--port=0"));
        let line = driver.line_of_stdout(|line| line.contains("started successfully") || line.contains("Exiting"));
        // It takes a port that is free under IPv6, and gives up if someone has the same under IPv4.
        if !line.contains("port not available") {
            let port = line.trim_end_matches('.').rsplit(' ').next().expect("a line has a last word");
            return (driver, port.to_owned());
        }
    }
}

async fn ask(client: &Client, method: Method, address: &str, body: &Value) -> Result<Value, String> {
    let mut request = client.request(method, address);
    if !body.is_null() {
        request = request.json(body);
    }
    let answer = request.send().await.expect("the driver answers");
    let succeeded = answer.status().is_success();
    let answer: Value = answer.json().await.expect("JSON");
    let value = answer["value"].clone();
    if succeeded { Ok(value) } else { Err(format!("{}: {}", value["error"], value["message"])) }
}

/// True if the element belongs to a page that is gone. Drivers have more than one message for it.
fn was_renewed(error: &str) -> bool {
    ["stale element", "does not belong to the document"].iter().any(|word| error.contains(word))
}

/// Text as a literal of XPath.
fn quoted(text: &str) -> String {
    assert!(!text.contains('"'), "XPath cannot write it: {text}");
    format!("\"{text}\"")
}

fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}
