//! Every page and every form of the table, as every kind of visitor.
//!
//! Permissions come from the one function that decides; pages have to agree. A handler that is not in the table cannot
//! be reached, so none is forgotten. Who is refused has changed nothing, and a stranger gets the very page that everyone
//! gets where nothing is.

use std::collections::BTreeSet;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::header::{CONTENT_TYPE, COOKIE, HOST, LOCATION, ORIGIN, SET_COOKIE};
use axum::http::{Method, Request, StatusCode};
use axum::response::Response;
use harness::browser::PASSWORD;
use harness::permission_site::{MEMBERS, PermissionSite, Role, invited, owners_of};
use taco_control_plane::{Caller, RequestInfo};
use taco_domain::id::UserId;
use taco_ledger::LedgerName;
use taco_web::Web;
use taco_web::routes::{self, Access, Route};
use tower::ServiceExt;
use url::form_urlencoded::Serializer;

/// Someone who is logged in.
#[derive(Clone, Copy)]
enum Who {
    Outsider,
    Member(Role),
    SiteAdmin,
    /// An owner of another organization.
    Rival,
}

impl Who {
    /// True if they must not even learn that the organization exists.
    fn is_stranger(self) -> bool {
        matches!(self, Self::Outsider | Self::Rival)
    }
}

fn visitors() -> impl Iterator<Item = (&'static str, Who)> {
    let others =
        [("outsider", Who::Outsider), ("site admin", Who::SiteAdmin), ("owner of another organization", Who::Rival)];
    MEMBERS.iter().map(|(name, role)| (*name, Who::Member(*role))).chain(others)
}

/// Files that hold secrets: the audit trail has who read them.
const READS_IN_AUDIT_TRAIL: [&str; 3] = [
    "/app/{organization}/workspaces/{workspace}/states/{state}/download",
    "/app/{organization}/workspaces/{workspace}/states/{state}/resources",
    "/app/{organization}/workspaces/{workspace}/runs/{run}/plan/{form}",
];

/// Sender of a form, as browsers tell.
#[derive(Clone, Copy, PartialEq)]
enum From {
    OurPage,
    AnotherSite,
}

/// One request to a route. Where its answer depends on which thing it names, a route has several.
struct PageRequest {
    path: String,
    access: Access,
}

struct Pages {
    site: PermissionSite,
    router: Router,
}

/// How far each ledger of the site is.
type Heads = Vec<(LedgerName, u64)>;

impl Pages {
    fn of(site: PermissionSite) -> Self {
        let address = "http://taco.test".parse().expect("an address");
        let router = Web::new(site.server.control_plane.control_plane(), &address).into_router();
        Self { site, router }
    }

    async fn fork(&self) -> Self {
        let fork = Self::of(self.site.fork().await);
        // A ledger that is not open yet has no head to compare.
        fork.site.server.control_plane.all_organizations().await.expect("organizations");
        fork
    }

    /// The site, with names for the words that only pages have in their paths, and the session of such a visitor.
    async fn visited_by(who: Who) -> (Self, String) {
        let mut pages = Self::of(PermissionSite::new().await);
        let cookie = pages.cookie_of(who).await;
        let site = &pages.site;
        let named = |word: &str| site.names[word].clone();
        // Who gets another password loses the sessions that they had.
        let is_admin = matches!(who, Who::SiteAdmin);
        let admin = if is_admin { cookie.clone() } else { pages.cookie_of(Who::SiteAdmin).await };
        let admin_caller = pages.caller(&admin).await;
        let session = site.server.control_plane.session_of_cookie(&admin_caller, secret_of(&admin));
        let teams = BTreeSet::from([named("visible team").parse().expect("an id")]);
        let plane = &site.server.control_plane;
        let invitation = plane.create_invitation(&admin_caller, "acme", "someone@acme.test", teams).await;
        let link = invitation.expect("an invitation").text.expect("its link");
        site.plan_run().await;
        let names = [
            ("workspace", "web".to_owned()),
            ("workspace_id", named("workspace")),
            ("team_token", named("token of the team")),
            ("state", named("state_version")),
            ("configuration", named("configuration_version")),
            ("member", named("membership")),
            ("access", named("team_workspace")),
            ("trigger", named("run_trigger")),
            ("token", named("token of the pool")),
            ("token_id", named("token of the user")),
            ("session", session.expect("a session").to_string()),
            ("invitation", link.reveal()),
            ("secret", "mistyped".to_owned()),
            ("kind", "organization".to_owned()),
            ("step", "delete".to_owned()),
            ("phase", "plan".to_owned()),
        ];
        pages.site.names.extend(names);
        (pages, cookie)
    }

    /// The cookie of such a visitor, who is logged in.
    async fn cookie_of(&self, who: Who) -> String {
        let server = &self.site.server;
        let member_of = async |organization: &str, name: &str, team: Option<String>| {
            let (user, token) = server.given_user(name).await;
            server.with_token(&token).accepts(&invited(server, organization, name, team).await).await;
            user
        };
        let (user, name) = match who {
            Who::Outsider => (server.given_user("outsider").await.0, "outsider"),
            Who::SiteAdmin => (self.site.names["user"].parse().expect("an id"), self.site.names["username"].as_str()),
            Who::Member(role) => (member_of("acme", "jane", self.site.team_with(role).await).await, "jane"),
            Who::Rival => {
                server.given_organization("globex").await;
                (member_of("globex", "rival", Some(owners_of(server, "globex").await)).await, "rival")
            }
        };
        self.log_in(user, name).await
    }

    async fn log_in(&self, user: UserId, name: &str) -> String {
        let plane = &self.site.server.control_plane;
        let link = plane.renew_password_link(&self.site.server.admin_caller().await, user).await.expect("a link");
        plane.set_password_by_link(link.secret.reveal(), PASSWORD.to_owned()).await.expect("a password");
        let fields = [("username", name), ("password", PASSWORD)].map(|(key, value)| (key, value.to_owned()));
        let entered = self.send(None, &Method::POST, "/login", &fields, From::OurPage).await;
        let cookie = entered.headers().get(SET_COOKIE).expect("a cookie").to_str().expect("text");
        cookie.split(';').next().expect("a first part").to_owned()
    }

    async fn caller(&self, cookie: &str) -> Caller {
        let session = self.site.server.control_plane.authenticate_session(secret_of(cookie), RequestInfo::default());
        session.await.expect("a session")
    }

    async fn send(
        &self,
        cookie: Option<&str>,
        method: &Method,
        path: &str,
        fields: &[(&str, String)],
        from: From,
    ) -> Response {
        let origin = if from == From::OurPage { "http://taco.test" } else { "https://evil.test" };
        let mut request = Request::builder().method(method).uri(path).header(HOST, "taco.test");
        if let Some(cookie) = cookie {
            request = request.header(COOKIE, cookie);
        }
        let mut body = String::new();
        if *method == Method::POST {
            request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").header(ORIGIN, origin);
            body = Serializer::new(body).extend_pairs(fields).finish();
        }
        let request = request.body(Body::from(body)).expect("a request");
        self.router.clone().oneshot(request).await.expect("a router never fails")
    }

    /// All requests that a route is tried with.
    fn requests(&self, route: &Route) -> Vec<PageRequest> {
        match route.access {
            Access::Depends(cases) => {
                let request = |case: &routes::Case| PageRequest {
                    path: self.path(route, &self.site.naming(route.path, case)),
                    access: Access::All(case.rights),
                };
                cases.iter().map(request).collect()
            }
            access => vec![PageRequest { path: self.path(route, route.path), access }],
        }
    }

    /// A path of the table with names in place of the placeholders, and with the query that it cannot do without.
    fn path(&self, route: &Route, path: &str) -> String {
        let of_set = path.contains("/variable-sets/");
        let path = if of_set { path.replace("{variable}", "{set_variable}") } else { path.to_owned() };
        let path = match () {
            () if path.contains("/projects/") => path.replace("{notification}", "{notification of the project}"),
            () if path.contains("/teams/") => path.replace("{notification}", "{notification of the team}"),
            () => path,
        };
        let query = route.sample_query.map(|query| format!("?{query}")).unwrap_or_default();
        let path = self.site.filled(&format!("{path}{query}"));
        assert!(!path.contains('{'), "the site has no name for a word of {path}");
        path
    }

    fn fields(&self, route: &Route) -> Vec<(&'static str, String)> {
        route.sample_form.iter().map(|(key, value)| (*key, self.site.filled(value))).collect()
    }

    /// The CSRF token with which this session sends the forms of a route.
    async fn proof(&self, cookie: &str, route: &Route) -> String {
        // Programs get a token by this one, so that it has a CSRF token of its own.
        let page = if route.path == "/oauth/authorize" {
            let consent = routes::all().into_iter().find(|page| page.path == route.path && page.method == Method::GET);
            self.path(&consent.expect("the page of the form"), route.path)
        } else {
            "/app/organizations".to_owned()
        };
        let shown = text(self.send(Some(cookie), &Method::GET, &page, &[], From::OurPage).await).await;
        let fields = shown.split(r#"name="proof" value=""#).skip(1);
        // The page's own forms come after those of its header.
        fields.last().and_then(|rest| rest.split('"').next()).expect("a form").to_owned()
    }

    fn heads(&self) -> Heads {
        self.site.server.control_plane.ledgers_seen()
    }

    /// Expected response to this request, from the decisions of the one function about the caller.
    async fn expected(&self, caller: &Caller, access: Access) -> Expected {
        let rights = match access {
            Access::Public => return Expected::Open,
            Access::SignedAddress => return Expected::Refused(vec![StatusCode::NOT_FOUND]),
            Access::User => return Expected::Allowed,
            Access::Right(action, place) => vec![(action, place)],
            Access::All(rights) => rights.to_vec(),
            Access::Token | Access::OrganizationToken | Access::TaskToken | Access::Depends(_) => {
                unreachable!("{access:?} of a page")
            }
        };
        let decisions = self.site.decisions(caller, &rights).await;
        let refusals: Vec<StatusCode> = decisions
            .iter()
            .filter(|decision| !decision.allowed)
            .map(|decision| if decision.visible { StatusCode::FORBIDDEN } else { StatusCode::NOT_FOUND })
            .collect();
        if refusals.is_empty() { Expected::Allowed } else { Expected::Refused(refusals) }
    }
}

fn secret_of(cookie: &str) -> &str {
    cookie.split_once('=').expect("a name and a value").1
}

async fn text(response: Response) -> String {
    let bytes = to_bytes(response.into_body(), usize::MAX).await.expect("a whole body");
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// Expected response.
#[derive(Debug)]
enum Expected {
    /// Anything but a refusal: whoever asks does not matter.
    Open,
    /// Success, or an error about some other obstacle.
    Allowed,
    /// One of these.
    Refused(Vec<StatusCode>),
}

impl Expected {
    fn is(&self, response: &Response) -> bool {
        let status = response.status();
        match self {
            Self::Open => !status.is_server_error() && status != StatusCode::FORBIDDEN && !leads_to_login(response),
            Self::Allowed => {
                let obstacles = [StatusCode::CONFLICT, StatusCode::UNPROCESSABLE_ENTITY];
                status.is_success()
                    || status.is_redirection() && !leads_to_login(response)
                    || obstacles.contains(&status)
            }
            Self::Refused(statuses) => statuses.contains(&status),
        }
    }
}

/// True where nobody was recognised. Who ends their own session is led there too, but the cookie is taken from them.
fn leads_to_login(response: &Response) -> bool {
    let location = response.headers().get(LOCATION).map(|location| location.as_bytes());
    location.is_some_and(|location| location.starts_with(b"/login")) && !response.headers().contains_key(SET_COOKIE)
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_do_what_the_one_function_decides() {
    let visitors: Vec<_> = visitors().map(|(name, who)| tokio::spawn(differences(name, who))).collect();
    let mut differences = Vec::new();
    for visitor in visitors {
        differences.extend(visitor.await.expect("a list"));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Asks for every page and sends every form as this visitor, and says where the answer is not what was decided.
async fn differences(name: &'static str, who: Who) -> Vec<String> {
    let (site, cookie) = Pages::visited_by(who).await;
    let mut pages = site.fork().await;
    let mut differences = Vec::new();
    for route in routes::all() {
        for PageRequest { path, access } in site.requests(&route) {
            let told = format!("{name}: {} {path}", route.method);
            let mut differs = |how: String| differences.push(format!("{told} {how}"));
            let mut fields = pages.fields(&route);
            let expected = pages.expected(&pages.caller(&cookie).await, access).await;
            let before = pages.heads();
            if route.needs_csrf_token() {
                let proof = pages.proof(&cookie, &route).await;
                let forged = pages.send(Some(&cookie), &route.method, &path, &fields, From::OurPage).await.status();
                fields.push(("proof", proof));
                let foreign =
                    pages.send(Some(&cookie), &route.method, &path, &fields, From::AnotherSite).await.status();
                if [forged, foreign] != [StatusCode::FORBIDDEN; 2] || pages.heads() != before {
                    differs(format!("takes a form without a CSRF token ({forged}) or from another site ({foreign})"));
                }
            }
            let response = pages.send(Some(&cookie), &route.method, &path, &fields, From::OurPage).await;
            let status = response.status();
            if !expected.is(&response) {
                differs(format!("gave {status}, expected {expected:?}"));
            }
            let is_refused = matches!(expected, Expected::Refused(_));
            if is_refused && who.is_stranger() {
                let nowhere = path.replace("/app/acme", "/app/nowhere");
                let missing = pages.send(Some(&cookie), &route.method, &nowhere, &fields, From::OurPage).await;
                if text(response).await != text(missing).await {
                    differs("tells a stranger more than a page that is not there".to_owned());
                }
            }
            if pages.heads() != before {
                let only_reads = route.method == Method::GET && !READS_IN_AUDIT_TRAIL.contains(&route.path);
                if is_refused || only_reads {
                    differs(format!("changed something, with {status}"));
                }
                pages = site.fork().await;
            }
        }
    }
    differences
}

#[tokio::test]
async fn nobody_gets_in_without_a_session() {
    let (pages, suspended) = Pages::visited_by(Who::Member(Role::Owner)).await;
    let plane = &pages.site.server.control_plane;
    let ended = pages.cookie_of(Who::SiteAdmin).await;
    plane.log_out(secret_of(&ended)).await.expect("a bucket");
    let owner = plane.account(&pages.caller(&suspended).await).await.expect("an account");
    let admin = pages.site.server.admin_caller().await;
    plane.suspend_user(&admin, owner.id, true).await.expect("a user");
    let (_, token) = pages.site.server.given_user("joe").await;
    let token = format!("taco={token}");
    let cookies = [None, Some(suspended.as_str()), Some(&ended), Some(&token), Some("taco=mistyped")];
    for route in routes::all() {
        for PageRequest { path, access } in pages.requests(&route) {
            for cookie in cookies {
                let before = pages.heads();
                let fields = pages.fields(&route);
                let response = pages.send(cookie, &route.method, &path, &fields, From::OurPage).await;
                let status = response.status();
                let is_right = match access {
                    Access::Public => Expected::Open.is(&response),
                    Access::SignedAddress => status == StatusCode::NOT_FOUND,
                    _ => leads_to_login(&response) && text(response).await.is_empty(),
                };
                assert!(is_right, "{} {path} with {cookie:?}: {status}", route.method);
                assert_eq!(pages.heads(), before, "{} {path}", route.method);
            }
        }
    }
}
