//! A tree of differences as text, laid out as terraform does it.

use serde_json::Value;

use super::diff::{Action, Diff, NestedBlock, Shape, common};
use crate::colour::{Colour, Painter};

/// Attributes that say which thing it is: they are shown although they stay as they are.
const SHOWN_UNCHANGED: [&str; 3] = ["id", "name", "tags"];

#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Options {
    /// Do not say `-> null` after what is removed: what is around it says it.
    pub(super) without_null: bool,
    /// Show also what stays as it is.
    pub(super) unchanged: bool,
}

#[derive(Debug)]
pub(super) struct Renderer {
    pub(super) painter: Painter,
}

fn indent(level: usize) -> String {
    "    ".repeat(level)
}

fn sign_of(action: Action) -> (&'static str, Option<Colour>) {
    match action {
        Action::Keep => ("   ", None),
        Action::Create => ("  +", Some(Colour::Green)),
        Action::Update => ("  ~", Some(Colour::Yellow)),
        Action::Delete => ("  -", Some(Colour::Red)),
    }
}

fn counted(number: usize, noun: &str) -> String {
    format!("{number} unchanged {noun}{}", if number == 1 { "" } else { "s" })
}

impl Renderer {
    pub(super) fn sign(&self, action: Action) -> String {
        let (sign, colour) = sign_of(action);
        self.painter.paint_if(sign, colour)
    }

    fn dim(&self, text: &str) -> String {
        self.painter.paint(text, Colour::Dim)
    }

    /// What stands after a value: that it is gone, and that it costs a replacement.
    fn suffix(&self, diff: &Diff, options: Options) -> String {
        let null = diff.action == Action::Delete && !options.without_null;
        let null = if null { self.dim(" -> null") } else { String::new() };
        format!("{null}{}", self.forces(diff))
    }

    fn forces(&self, diff: &Diff) -> String {
        if diff.forces_replacement { self.painter.paint(" # forces replacement", Colour::Red) } else { String::new() }
    }

    /// The value alone; its first line is the rest of a line that has begun.
    pub(super) fn render(&self, diff: &Diff, level: usize, options: Options) -> String {
        match &diff.shape {
            Shape::Scalar { before, after } => self.scalar(diff, before.as_ref(), after.as_ref(), level, options),
            Shape::Unknown { before } => {
                let after = format!("{}{}", self.dim("(known after apply)"), self.forces(diff));
                match before {
                    None => after,
                    Some(before) => {
                        let before = self.render(before, level, Options { without_null: true, ..options });
                        format!("{before} -> {after}")
                    }
                }
            }
            Shape::Sensitive { .. } => format!("{}{}", self.dim("(sensitive value)"), self.suffix(diff, options)),
            Shape::Object(parts) => self.named(diff, parts, level, options, true),
            Shape::Map(parts) => self.named(diff, parts, level, options, false),
            Shape::List(parts) => self.elements(diff, parts, level, options, true),
            Shape::Set(parts) => self.elements(diff, parts, level, options, false),
            Shape::Json { document, only_whitespace } => {
                let remark = if *only_whitespace { " # whitespace changes" } else { "" };
                let inner_options = Options { without_null: true, unchanged: options.unchanged || *only_whitespace };
                let sign =
                    if diff.action == Action::Update && !only_whitespace { document.action } else { Action::Keep };
                let inner = self.render(document, level + 1, inner_options);
                let (start, sign, end) = (indent(level + 1), self.sign(sign), indent(level));
                format!(
                    "jsonencode({remark}{}\n{start}{sign} {inner}\n{end}    ){}",
                    self.forces(diff),
                    self.suffix_of_json(diff, options)
                )
            }
            Shape::TypeChange(before, after) => {
                let without_null = Options { without_null: true, ..options };
                let (before, after) =
                    (self.render(before, level, without_null), self.render(after, level, without_null));
                format!("{before} -> {after}{}", self.forces(diff))
            }
            Shape::Block { attributes, blocks } => self.block(diff, attributes, blocks, level, options),
        }
    }

    fn suffix_of_json(&self, diff: &Diff, options: Options) -> String {
        if diff.action == Action::Delete && !options.without_null { self.dim(" -> null") } else { String::new() }
    }

    fn scalar(
        &self,
        diff: &Diff,
        before: Option<&Value>,
        after: Option<&Value>,
        level: usize,
        options: Options,
    ) -> String {
        let lines = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let (old, new) = (lines(before), lines(after));
        let has_lines = |text: &Option<String>| {
            text.as_ref().is_some_and(|text| text.trim_end_matches('\n').contains('\n') || text.ends_with('\n'))
        };
        let are_texts = before.is_none_or(Value::is_string) && after.is_none_or(Value::is_string);
        if are_texts && (has_lines(&old) || has_lines(&new)) {
            return self.heredoc(diff, old.as_deref(), new.as_deref(), level, options);
        }
        let text = |value: Option<&Value>| value.map_or_else(|| "null".to_owned(), literal);
        match diff.action {
            Action::Update => format!("{} -> {}{}", text(before), text(after), self.forces(diff)),
            Action::Delete => format!("{}{}", text(before), self.suffix(diff, options)),
            Action::Create | Action::Keep => format!("{}{}", text(after.or(before)), self.forces(diff)),
        }
    }

    /// A text of several lines.
    fn heredoc(
        &self,
        diff: &Diff,
        before: Option<&str>,
        after: Option<&str>,
        level: usize,
        options: Options,
    ) -> String {
        let lines = |text: Option<&str>| -> Vec<String> {
            let text = text.map(|text| text.strip_suffix('\n').unwrap_or(text));
            text.map(|text| text.split('\n').map(printable).collect()).unwrap_or_default()
        };
        let (old, new) = (lines(before), lines(after));
        let mut all: Vec<(Action, &String)> = Vec::new();
        if diff.action == Action::Update {
            let (mut at_old, mut at_new) = (0, 0);
            let same = common(old.len(), new.len(), |a, b| old[a] == new[b]);
            for (next_old, next_new) in same.into_iter().chain([(old.len(), new.len())]) {
                all.extend(old[at_old..next_old].iter().map(|line| (Action::Delete, line)));
                all.extend(new[at_new..next_new].iter().map(|line| (Action::Create, line)));
                all.extend(new.get(next_new).filter(|_| next_old < old.len()).map(|line| (Action::Keep, line)));
                (at_old, at_new) = (next_old + 1, next_new + 1);
            }
        } else {
            let lines = if after.is_some() { &new } else { &old };
            all.extend(lines.iter().map(|line| (Action::Keep, line)));
        }
        let start = indent(level + 1);
        let body: String = all.iter().map(|(action, line)| format!("{start}{} {line}\n", self.sign(*action))).collect();
        format!("<<-EOT{}\n{body}{}    EOT{}", self.forces(diff), indent(level), self.suffix_of_json(diff, options))
    }

    /// Attributes of an object, or elements of a map.
    fn named(&self, diff: &Diff, parts: &[(String, Diff)], level: usize, options: Options, is_object: bool) -> String {
        if parts.is_empty() {
            return format!("{{}}{}", self.suffix(diff, options));
        }
        let name_of = |name: &str| if is_object { identifier(name) } else { quoted(name) };
        let width = parts.iter().map(|(name, _)| name_of(name).chars().count()).max().unwrap_or_default();
        let mut lines = String::new();
        let mut hidden = 0;
        for (name, part) in parts {
            let matters = is_object && SHOWN_UNCHANGED.contains(&name.as_str());
            if part.action == Action::Keep && !options.unchanged && !matters {
                hidden += 1;
                continue;
            }
            let inner = Options { without_null: true, unchanged: options.unchanged || matters };
            self.attribute(&mut lines, &name_of(name), width, part, level, inner);
        }
        self.remark(&mut lines, level, hidden, if is_object { "attribute" } else { "element" });
        format!("{{{}\n{lines}{}    }}{}", self.forces(diff), indent(level), self.suffix_of_json(diff, options))
    }

    fn attribute(&self, lines: &mut String, name: &str, width: usize, part: &Diff, level: usize, options: Options) {
        if let Shape::Sensitive { before, after } = part.shape
            && before != after
            && part.action == Action::Update
        {
            let what =
                if after { "marked as sensitive and will not" } else { "no longer marked as sensitive and will" };
            let text = format!(
                "# Warning: this attribute value will be {what} display in UI output after applying this change."
            );
            lines.push_str(&format!("{}    {}\n", indent(level + 1), self.painter.paint(&text, Colour::Yellow)));
        }
        let padding = " ".repeat(width.saturating_sub(name.chars().count()));
        let value = self.render(part, level + 1, options);
        lines.push_str(&format!("{}{} {name}{padding} = {value}\n", indent(level + 1), self.sign(part.action)));
    }

    /// Tells how much is not shown.
    fn remark(&self, lines: &mut String, level: usize, hidden: usize, noun: &str) {
        if hidden > 0 {
            let text = self.dim(&format!("# ({} hidden)", counted(hidden, noun)));
            lines.push_str(&format!("{}    {text}\n", indent(level + 1)));
        }
    }

    /// A list, with the elements around those that change, or a set.
    fn elements(&self, diff: &Diff, parts: &[Diff], level: usize, options: Options, with_context: bool) -> String {
        if parts.is_empty() {
            return format!("[]{}", self.suffix(diff, options));
        }
        let inner = Options { without_null: true, unchanged: options.unchanged };
        let mut lines = String::new();
        let line = |lines: &mut String, part: &Diff, options: Options| {
            let value = self.render(part, level + 1, options);
            lines.push_str(&format!("{}{} {value},\n", indent(level + 1), self.sign(part.action)));
        };
        let shown_in_full = Options { unchanged: true, ..inner };
        let changed = |index: usize| parts.get(index).is_some_and(|part| part.action != Action::Keep);
        let mut hidden = 0;
        for (index, part) in parts.iter().enumerate() {
            let is_context = with_context && (changed(index + 1) || index.checked_sub(1).is_some_and(changed));
            if part.action == Action::Keep && !options.unchanged && !is_context {
                hidden += 1;
                continue;
            }
            if with_context {
                self.remark(&mut lines, level, std::mem::take(&mut hidden), "element");
            }
            line(&mut lines, part, if part.action == Action::Keep { shown_in_full } else { inner });
        }
        self.remark(&mut lines, level, hidden, "element");
        format!("[{}\n{lines}{}    ]{}", self.forces(diff), indent(level), self.suffix_of_json(diff, options))
    }

    fn block(
        &self,
        diff: &Diff,
        attributes: &[(String, Diff)],
        blocks: &[(String, Vec<NestedBlock>)],
        level: usize,
        options: Options,
    ) -> String {
        if attributes.is_empty() && blocks.is_empty() {
            return format!("{{}}{}", self.forces(diff));
        }
        let width = attributes.iter().map(|(name, _)| identifier(name).chars().count()).max().unwrap_or_default();
        let mut lines = String::new();
        let mut hidden = 0;
        for (name, part) in attributes {
            let matters = SHOWN_UNCHANGED.contains(&name.as_str());
            if part.action == Action::Keep && !options.unchanged && !matters {
                hidden += 1;
                continue;
            }
            let inner = Options { without_null: false, unchanged: options.unchanged || matters };
            self.attribute(&mut lines, &identifier(name), width, part, level, inner);
        }
        self.remark(&mut lines, level, hidden, "attribute");
        let mut hidden = 0;
        for (name, nested) in blocks {
            let mut begun = false;
            for (label, part) in nested {
                if part.action == Action::Keep && !options.unchanged {
                    hidden += 1;
                    continue;
                }
                if !begun && !lines.is_empty() {
                    lines.push('\n');
                }
                begun = true;
                let label = label.as_ref().map(|label| format!(" {}", quoted(label))).unwrap_or_default();
                let value = self.render(part, level + 1, Options { without_null: false, ..options });
                lines.push_str(&format!(
                    "{}{} {}{label} {value}\n",
                    indent(level + 1),
                    self.sign(part.action),
                    identifier(name)
                ));
            }
        }
        if hidden > 0 {
            if !lines.is_empty() {
                lines.push('\n');
            }
            self.remark(&mut lines, level, hidden, "block");
        }
        format!("{{{}\n{lines}{}    }}", self.forces(diff), indent(level))
    }
}

/// A name as it may stand before `=`.
pub(super) fn identifier(name: &str) -> String {
    let mut letters = name.chars();
    let begins = letters.next().is_some_and(|letter| letter.is_alphabetic() || letter == '_');
    let goes_on = letters.all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '-');
    if begins && goes_on { name.to_owned() } else { quoted(name) }
}

pub(super) fn quoted(text: &str) -> String {
    printable(&Value::from(text).to_string())
}

fn literal(value: &Value) -> String {
    printable(&value.to_string())
}

/// A line that cannot steer the terminal.
pub(super) fn printable(line: &str) -> String {
    line.chars().filter(|letter| *letter == '\t' || !letter.is_control()).collect()
}
