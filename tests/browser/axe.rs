//! axe-core finds what keeps people from using a page, such as people who cannot see it.

use harness::chromium::Chromium;

/// Violations that axe finds on the browser's current page; one line for each kind and element.
pub(crate) async fn violations(chromium: &Chromium) -> Vec<String> {
    let file = std::env::var("TACO_TEST_AXE").unwrap_or_else(|_| {
        panic!(r#"TACO_TEST_AXE is not set: run `cargo xtask test`, or eval "$(cargo xtask tools)" first"#)
    });
    chromium.evaluates(&std::fs::read_to_string(file).expect("it was installed")).await;
    let found = chromium
        .awaits(
            r#"
            const done = arguments[arguments.length - 1];
            const lines = (rule) => rule.nodes.map((node) =>
                `${rule.id} (${rule.impact}): ${node.html} ${node.any.concat(node.all, node.none).map((check) => check.message).join("; ")}`);
            axe.run({ resultTypes: ["violations"] })
                .then((results) => done(results.violations.flatMap(lines)), (error) => done([String(error)]));
            "#,
        )
        .await;
    found.as_array().expect("a list").iter().map(|line| line.as_str().expect("text").to_owned()).collect()
}
