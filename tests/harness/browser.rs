//! As much of a browser as the tests need: it keeps the cookie, fills in forms as they are on the page, and says where
//! they come from.

use std::cell::RefCell;

use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response, StatusCode};

const FLASH: &str = "taco-flash=";
const ONCE: &str = "taco-once=";

/// Password of the first admin.
pub const PASSWORD: &str = "correct horse";

pub struct Browser {
    pub origin: String,
    client: Client,
    pub cookie: RefCell<Option<String>>,
    /// Cookie with the message for the next page.
    flash: RefCell<Option<String>>,
    /// Cookie with a secret for the next page.
    once: RefCell<Option<String>>,
}

#[derive(Debug)]
pub struct Page {
    pub path: String,
    pub status: StatusCode,
    pub headers: reqwest::header::HeaderMap,
    pub text: String,
}

/// A form on a page.
#[derive(Clone, Debug)]
pub struct PageForm {
    pub action: String,
    pub hidden: Vec<(String, String)>,
}

impl Browser {
    pub fn at(origin: String, client: reqwest::ClientBuilder) -> Self {
        let client = client.redirect(Policy::none()).build().expect("a client");
        Self { origin, client, cookie: RefCell::default(), flash: RefCell::default(), once: RefCell::default() }
    }

    /// Sets the first admin's password through the link that the server printed, which logs them in.
    pub async fn set_password(&self, link: &str) {
        let page = self.get(link).await;
        let done = self.send(&page.form(""), &[("password", PASSWORD), ("repeated", PASSWORD)]).await;
        assert_eq!((done.status, done.location()), (StatusCode::SEE_OTHER, "/app"), "{}", done.text);
    }

    /// Accepts an invitation that waits on the page of the visitor's organizations.
    pub async fn accepts_invitation(&self, membership: &str) {
        let action = format!("/app/settings/invitations/{membership}/accept");
        let done = self.send(&self.get("/app/organizations").await.form(&action), &[]).await;
        assert!(done.flash().starts_with("Welcome!"), "{}", done.text);
    }

    pub async fn get(&self, path: &str) -> Page {
        let request = self.client.get(format!("{}{path}", self.origin));
        self.ask(path, request).await
    }

    /// Asks for a part of a page as htmx does.
    pub async fn get_part(&self, path: &str) -> Page {
        let request = self.client.get(format!("{}{path}", self.origin)).header("hx-request", "true");
        self.ask(path, request).await
    }

    /// Asks whether a live part of a page has changed since `version`, as its script does.
    pub async fn get_newer(&self, path: &str, version: &str) -> Page {
        let request = self.client.get(format!("{}{path}", self.origin));
        self.ask(path, request.header("hx-request", "true").header("if-none-match", version)).await
    }

    /// Begins to read something that goes on, from behind the event with this id.
    pub async fn open(&self, path: &str, last_event_id: Option<&str>) -> Response {
        let mut request = self.client.get(format!("{}{path}", self.origin));
        if let Some(cookie) = self.cookie.borrow().as_deref() {
            request = request.header("cookie", cookie);
        }
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        request.send().await.expect("the server answers")
    }

    /// Sends a form as browsers do.
    pub async fn send(&self, form: &PageForm, fields: &[(&str, &str)]) -> Page {
        self.send_from(form, fields, &[("origin", &self.origin), ("sec-fetch-site", "same-origin")]).await
    }

    /// Sends a form that is fine, and looks at the page that it leads to.
    pub async fn sends_and_follows(&self, form: &PageForm, fields: &[(&str, &str)]) -> Page {
        let done = self.send(form, fields).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        self.get(done.location()).await
    }

    /// Sends a form with these headers about its origin.
    pub async fn send_from(&self, form: &PageForm, fields: &[(&str, &str)], headers: &[(&str, &str)]) -> Page {
        let hidden = form.hidden.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let fields: Vec<(&str, &str)> = hidden.chain(fields.iter().copied()).collect();
        let mut request = self.client.post(format!("{}{}", self.origin, form.action)).form(&fields);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.ask(&form.action, request).await
    }

    /// Asks with a token instead of the cookie.
    pub async fn api_status(&self, path: &str, token: &str) -> u16 {
        let request = self.client.request(Method::GET, format!("{}{path}", self.origin)).bearer_auth(token);
        request.send().await.expect("the server answers").status().as_u16()
    }

    async fn ask(&self, path: &str, mut request: reqwest::RequestBuilder) -> Page {
        for cookie in [&self.cookie, &self.flash, &self.once] {
            if let Some(cookie) = cookie.borrow().as_deref() {
                request = request.header("cookie", cookie);
            }
        }
        let response = request.send().await.expect("the server answers");
        self.keep_cookie(&response);
        let (status, headers) = (response.status(), response.headers().clone());
        Page { path: path.to_owned(), status, headers, text: response.text().await.expect("text") }
    }

    fn keep_cookie(&self, response: &Response) {
        for header in response.headers().get_all("set-cookie") {
            let header = header.to_str().expect("text");
            let pair = header.split(';').next().expect("a cookie has a first part");
            let kept = match pair {
                pair if pair.starts_with(FLASH) => &self.flash,
                pair if pair.starts_with(ONCE) => &self.once,
                _ => &self.cookie,
            };
            *kept.borrow_mut() = (!header.contains("Max-Age=0")).then(|| pair.to_owned());
        }
    }
}

impl Page {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }

    pub fn location(&self) -> &str {
        self.header("location")
    }

    /// The message that the answer to a form leaves for the next page.
    pub fn flash(&self) -> String {
        let cookies = self.headers.get_all("set-cookie").into_iter().filter_map(|cookie| cookie.to_str().ok());
        let pair = cookies.filter_map(|cookie| cookie.split(';').next()).find(|pair| pair.starts_with(FLASH));
        let sealed = pair.and_then(|pair| pair.split_once('.')).map_or("", |(_, sealed)| sealed);
        let content = url::form_urlencoded::parse(sealed.as_bytes()).next().map(|(text, _)| text.into_owned());
        content.and_then(|content| content.split_once('\n').map(|(_, text)| text.to_owned())).unwrap_or_default()
    }

    /// Where the answer to a form leads, and what is said there: `/app/acme: Settings saved.`
    pub fn done(&self) -> String {
        format!("{}: {}", self.location(), self.flash())
    }

    /// The first form to post whose action begins so; an action that is missing is the page's own address.
    pub fn form(&self, action: &str) -> PageForm {
        let forms = self.text.split("<form ").skip(1).map(|rest| rest.split("</form>").next().expect("a first part"));
        for form in forms {
            let tag = form.split('>').next().expect("a first part");
            let found = attribute(tag, "action").unwrap_or_else(|| self.path.clone());
            if !found.starts_with(action) || tag.contains(r#"method="get""#) {
                continue;
            }
            let inputs = form.split("<input ").skip(1).map(|input| input.split('>').next().expect("a first part"));
            let hidden = inputs.filter(|input| input.contains(r#"type="hidden""#)).map(|input| {
                (attribute(input, "name").expect("a name"), attribute(input, "value").unwrap_or_default())
            });
            return PageForm { action: found, hidden: hidden.collect() };
        }
        panic!("no form for {action:?} on {}:\n{}", self.path, self.text);
    }
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let value = tag.split(&format!("{name}=\"")).nth(1)?.split('"').next()?;
    Some(value.replace("&#38;", "&").replace("&amp;", "&"))
}
