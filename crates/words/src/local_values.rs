//! Local values in a configuration's files: what their expressions refer to. A plan does not have them.

use hcl_edit::expr::{Expression, Traversal, TraversalOperator};
use hcl_edit::structure::Body;
use hcl_edit::visit::{Visit, visit_traversal};

/// What one local value refers to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LocalValue {
    /// It is another name for this traversal, such as `data.terraform_remote_state.a.outputs`.
    Traversal(String),
    /// Traversals in its expression.
    Expression(Vec<String>),
}

impl LocalValue {
    /// Both, where two files declare the same one.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        if self == other {
            return self;
        }
        let traversals = |value| match value {
            Self::Traversal(traversal) => vec![traversal],
            Self::Expression(traversals) => traversals,
        };
        let mut both = traversals(self);
        both.extend(traversals(other));
        Self::Expression(both)
    }
}

/// Local values that a `.tf` file declares; `None` if it cannot be read.
pub fn local_values(text: &str) -> Option<Vec<(String, LocalValue)>> {
    let body: Body = text.parse().ok()?;
    let attributes = body.get_blocks("locals").flat_map(|block| block.body.attributes());
    Some(attributes.map(|attribute| (attribute.key.as_str().to_owned(), local_value(&attribute.value))).collect())
}

fn local_value(expression: &Expression) -> LocalValue {
    match expression {
        Expression::Parenthesis(inner) => local_value(inner.inner()),
        Expression::Traversal(traversal) => match known_part(traversal) {
            Some((known, true)) => LocalValue::Traversal(known),
            _ => references(expression),
        },
        _ => references(expression),
    }
}

fn references(expression: &Expression) -> LocalValue {
    let mut references = References::default();
    references.visit_expr(expression);
    LocalValue::Expression(references.found)
}

/// Traversals within an expression, also within others.
#[derive(Default)]
struct References {
    found: Vec<String>,
}

impl Visit for References {
    fn visit_traversal(&mut self, traversal: &Traversal) {
        if let Some((known, _)) = known_part(traversal) {
            self.found.push(known);
        }
        visit_traversal(self, traversal);
    }
}

/// The traversal as far as it is known before it is evaluated, and whether that is all of it.
fn known_part(traversal: &Traversal) -> Option<(String, bool)> {
    let Expression::Variable(root) = &traversal.expr else { return None };
    let mut known = root.as_str().to_owned();
    for operator in &traversal.operators {
        match operator.value() {
            TraversalOperator::GetAttr(name) => {
                known.push('.');
                known.push_str(name.as_str());
            }
            TraversalOperator::LegacyIndex(index) => known.push_str(&format!("[{}]", index.value())),
            TraversalOperator::Index(Expression::String(key)) => {
                known.push_str(&format!("[{}]", serde_json::Value::from(key.value().as_str())));
            }
            TraversalOperator::Index(Expression::Number(index)) => known.push_str(&format!("[{}]", index.value())),
            _ => return Some((known, false)),
        }
    }
    Some((known, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(expression: &str) -> LocalValue {
        let text = format!("locals {{\n  x = {expression}\n}}\nlocals {{}}\n");
        local_values(&text).expect("a file").remove(0).1
    }

    #[test]
    fn another_name_is_told_from_an_expression() {
        let alias = |text: &str| LocalValue::Traversal(text.to_owned());
        assert_eq!(value("data.t.a.outputs"), alias("data.t.a.outputs"));
        assert_eq!(value("(data.t.a[\"p\"].outputs[\"we-ird\\\"é\"])"), alias(r#"data.t.a["p"].outputs["we-ird\"é"]"#));
        assert_eq!(value("data.t.a[0].outputs.list.1"), alias("data.t.a[0].outputs.list[1]"));
        assert_eq!(value("local.other"), alias("local.other"));
    }

    #[test]
    fn expressions_have_all_that_they_refer_to() {
        for (expression, expected) in [
            ("7", ""),
            ("\"x-${data.t.a.outputs.id}\"", "data.t.a.outputs.id"),
            ("merge(local.tags, { Name = var.name })", "local.tags var.name"),
            ("data.t.a[*].outputs.id", "data.t.a"),
            ("data.t.a.outputs.list[var.index]", "data.t.a.outputs.list var.index"),
            ("{ for k, v in data.t.a.outputs : k => v.id if v.on }", "data.t.a.outputs v.id v.on"),
            ("try(data.t.a.outputs.id, [for x in local.b.c : x])", "data.t.a.outputs.id local.b.c"),
            ("<<-EOT\n    ${data.t.a.outputs.id}\n  EOT\n", "data.t.a.outputs.id"),
            ("var.on ? data.t.a.outputs.id : null", "var.on data.t.a.outputs.id"),
            ("f(data.t.a.outputs).id", "data.t.a.outputs"),
        ] {
            let expected: Vec<String> = expected.split_whitespace().map(str::to_owned).collect();
            assert_eq!(value(expression), LocalValue::Expression(expected), "{expression}");
        }
    }

    #[test]
    fn what_is_no_file_has_none() {
        assert_eq!(local_values("locals { x = "), None);
        assert_eq!(local_values("resource \"a\" \"b\" {}\n"), Some(Vec::new()));
    }
}
