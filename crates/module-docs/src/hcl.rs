//! Files in HCL.

use hcl_edit::Span;
use hcl_edit::expr::{Expression, ObjectKey};
use hcl_edit::structure::{Block, Body};
use hcl_edit::template::Element;

use crate::collect::{beginning, push};
use crate::docs::{Input, ModuleCall, ModulePart, Output, RequiredProvider, Resource};

/// Maximum size of a text that is taken over, such as a description or a default.
pub(crate) const MAX_TEXT_BYTES: usize = 8 * 1024;

/// Adds what a file says. The error completes "… could not be read: ".
pub(crate) fn read(text: &str, part: &mut ModulePart) -> Result<(), String> {
    let body: Body = text.parse().map_err(|error: hcl_edit::parser::Error| {
        let place = error.location();
        format!("not valid HCL (line {}, column {})", place.line(), place.column())
    })?;
    let file = Source(text);
    for block in body.blocks() {
        let labels: Vec<&str> = block.labels.iter().map(|label| label.as_str()).collect();
        match (block.ident.as_str(), labels.as_slice()) {
            ("terraform", []) => file.add_requirements(&block.body, part),
            ("variable", [name]) => push(&mut part.inputs, file.input(name, &block.body)),
            ("output", [name]) => push(
                &mut part.outputs,
                Output {
                    name: cut(name),
                    description: file.text(&block.body, "description"),
                    sensitive: is_true(&block.body, "sensitive"),
                },
            ),
            ("resource" | "data", [kind, name]) => {
                let data = block.ident.as_str() == "data";
                push(&mut part.resources, Resource { kind: cut(kind), name: cut(name), data });
            }
            ("module", [name]) => push(
                &mut part.module_calls,
                ModuleCall {
                    name: cut(name),
                    source: file.text(&block.body, "source"),
                    version: file.text(&block.body, "version"),
                },
            ),
            _ => {}
        }
    }
    Ok(())
}

fn cut(text: &str) -> String {
    beginning(text, MAX_TEXT_BYTES)
}

fn is_true(body: &Body, name: &str) -> bool {
    body.get_attribute(name).and_then(|attribute| attribute.value.as_bool()) == Some(true)
}

/// A file, to show expressions as they are written.
struct Source<'a>(&'a str);

impl Source<'_> {
    fn input(&self, name: &str, body: &Body) -> Input {
        let validations = body.get_blocks("validation").map(|block: &Block| self.text(&block.body, "error_message"));
        let nullable = body.get_attribute("nullable").and_then(|attribute| attribute.value.as_bool());
        Input {
            name: cut(name),
            constraint: self.text(body, "type"),
            default: body.get_attribute("default").map(|attribute| self.written(&attribute.value)),
            description: self.text(body, "description"),
            sensitive: is_true(body, "sensitive"),
            ephemeral: is_true(body, "ephemeral"),
            nullable: nullable.unwrap_or(true),
            validations: validations.filter(|message| !message.is_empty()).take(20).collect(),
        }
    }

    fn add_requirements(&self, body: &Body, part: &mut ModulePart) {
        if body.get_attribute("required_version").is_some() {
            push(&mut part.required_versions, self.text(body, "required_version"));
        }
        for attribute in body.get_blocks("required_providers").flat_map(|block| block.body.attributes()) {
            let mut provider = RequiredProvider { name: cut(attribute.key.as_str()), ..RequiredProvider::default() };
            match &attribute.value {
                Expression::Object(object) => {
                    for (key, value) in object {
                        let key = match key {
                            ObjectKey::Ident(ident) => ident.as_str(),
                            ObjectKey::Expression(expression) => expression.as_str().unwrap_or_default(),
                        };
                        match key {
                            "source" => provider.source = self.plain(value.expr()),
                            "version" => provider.version = self.plain(value.expr()),
                            _ => {}
                        }
                    }
                }
                // As it was written before providers had sources: a version alone.
                other => provider.version = self.plain(other),
            }
            push(&mut part.providers, provider);
        }
    }

    /// An attribute's text without its quotes, or its expression as written; empty where there is none.
    fn text(&self, body: &Body, name: &str) -> String {
        body.get_attribute(name).map(|attribute| self.plain(&attribute.value)).unwrap_or_default()
    }

    fn plain(&self, expression: &Expression) -> String {
        match expression {
            Expression::String(text) => cut(text.value()),
            Expression::HeredocTemplate(heredoc) => {
                let literals = heredoc.template.iter().map(|element| match element {
                    Element::Literal(text) => Some(text.value().as_str()),
                    _ => None,
                });
                match literals.collect::<Option<String>>() {
                    Some(text) => cut(dedented(&text).trim_end()),
                    None => self.written(expression),
                }
            }
            _ => self.written(expression),
        }
    }

    /// An expression as it is written, without the indentation of the block that it is in.
    fn written(&self, expression: &Expression) -> String {
        let text = expression.span().and_then(|span| self.0.get(span)).unwrap_or_default().trim();
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        match rest.is_empty() {
            true => cut(first),
            false => cut(&format!("{first}\n{}", dedented(rest))),
        }
    }
}

/// Lines without the spaces that all of them begin with.
fn dedented(text: &str) -> String {
    let spaces = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let common = text.lines().filter(|line| !line.trim().is_empty()).map(spaces).min().unwrap_or(0);
    let lines: Vec<&str> = text.lines().map(|line| line.get(common.min(spaces(line))..).unwrap_or_default()).collect();
    lines.join("\n")
}
