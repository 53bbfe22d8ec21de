//! Variables as the engine reads them.
//!
//! All of a job's variables win over the files of a configuration, as Terraform Cloud documents it. So they go into a
//! file of their own that sorts after every `*.auto.tfvars`: the engines let the last one win, and no file of the
//! user is touched. Command-line flags would do the same for plans, but applies of a plan refuse them, and a variable
//! that is ephemeral has to be there again.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use taco_agent_protocol::{Variable, VariableCategory};

use crate::backend_override::last_name;

pub(crate) fn write(working_directory: &Path, variables: &[Variable]) -> io::Result<()> {
    let text = text(variables);
    if text.is_empty() {
        return Ok(());
    }
    let name = last_name(working_directory, ".auto.tfvars", &[".auto.tfvars", ".auto.tfvars.json"])?;
    let mut file =
        fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(working_directory.join(name))?;
    file.write_all(text.as_bytes())
}

fn text(variables: &[Variable]) -> String {
    let of_configuration = variables.iter().filter(|variable| variable.category == VariableCategory::Terraform);
    of_configuration
        // No configuration can declare a variable of another name, and one such line would spoil the whole file.
        .filter(|variable| variable.key.starts_with(|first: char| first.is_alphabetic() || first == '_'))
        .map(|variable| match variable.hcl {
            true => format!("{} = {}\n", variable.key, variable.value),
            false => format!("{} = {}\n", variable.key, quoted(&variable.value)),
        })
        .collect()
}

/// A text as HCL writes it: nothing in it is code.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '$' | '%' if characters.peek() == Some(&'{') => quoted.extend([character, character]),
            control if control.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(key: &str, value: &str, category: VariableCategory, hcl: bool) -> Variable {
        let (key, value) = (key.to_owned(), value.to_owned());
        Variable { key, value, category, hcl, sensitive: false }
    }

    #[test]
    fn texts_are_quoted_and_expressions_are_not() {
        let variables = [
            variable("text", "a \"b\" ${c} %{d} \\ $e\n\u{7}", VariableCategory::Terraform, false),
            variable("list", "[1, 2]", VariableCategory::Terraform, true),
            variable("1st", "one", VariableCategory::Terraform, false),
            variable("-x", "one", VariableCategory::Terraform, false),
            variable("AWS_REGION", "eu", VariableCategory::Env, false),
        ];
        let expected = "text = \"a \\\"b\\\" $${c} %%{d} \\\\ $e\\n\\u0007\"\nlist = [1, 2]\n";
        assert_eq!(text(&variables), expected);
    }

    #[test]
    fn the_file_sorts_last_and_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("zzz.auto.tfvars.json"), "{}").expect("a file");
        write(directory.path(), &[variable("a", "b", VariableCategory::Terraform, false)]).expect("a file");
        let file = fs::metadata(directory.path().join("~taco.auto.tfvars")).expect("the file");
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
    }
}
