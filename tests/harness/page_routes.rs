//! The routes of the pages, as their source has them: no route can be forgotten, because none has to be listed.

const SOURCE: &str = include_str!("../../crates/web/src/app.rs");

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// With names in braces, as `/app/{organization}`.
    pub path: String,
    /// Browsers can look at it.
    pub shows: bool,
    /// Browsers can send forms to it.
    pub takes_forms: bool,
}

impl Route {
    pub fn all() -> Vec<Self> {
        let source = SOURCE.split("#[cfg(test)]").next().unwrap_or_default();
        let calls = source.split(".route(").skip(1).map(str::trim_start);
        // Files have no names of their own.
        let calls = calls.filter(|call| !call.starts_with("&file.path"));
        let read = |call: &str| Self::read(call).unwrap_or_else(|| panic!("this route hides its path: {call:.60}"));
        let routes: Vec<Self> = calls.map(read).collect();
        assert!(routes.len() > 10, "the source of the routes is not read rightly: {routes:?}");
        routes
    }

    /// The route whose arguments the text begins with; none if its path is no text.
    fn read(text: &str) -> Option<Self> {
        let mut depth = 1;
        let end = text.find(|character: char| {
            depth += match character {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            depth == 0
        });
        let (path, methods) = text.get(..end?)?.trim_start().strip_prefix('"')?.split_once('"')?;
        let has = |method: &str| {
            let call = format!("{method}(");
            methods
                .match_indices(&call)
                .any(|(at, _)| !methods[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_'))
        };
        Some(Self { path: path.to_owned(), shows: has("get"), takes_forms: has("post") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_read_with_its_methods() {
        let read = Route::read(r#""/a/{b}", get(c::show).post(c::create))  .route("/d", any(x))"#);
        assert_eq!(read, Some(Route { path: "/a/{b}".to_owned(), shows: true, takes_forms: true }));
        let read = Route::read("\n    \"/a\",\n    post(c::target),\n  )");
        assert_eq!(read, Some(Route { path: "/a".to_owned(), shows: false, takes_forms: true }));
        assert_eq!(Route::read("&file.path, file.serve())"), None);
    }
}
