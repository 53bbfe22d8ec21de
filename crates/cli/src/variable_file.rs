//! Format of a file that variables are read from. `taco_words::variable_file` parses it.

use std::path::Path;

use clap::ValueEnum;
use taco_words::variable_file::VariableFormat;

/// File format of variables.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum Format {
    /// For terraform: `region = "eu"`
    Tfvars,
    /// For terraform: `{ "region": "eu" }`
    TfvarsJson,
    /// For the environment: `REGION=eu`
    Env,
}

impl From<Format> for VariableFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Tfvars => Self::Tfvars,
            Format::TfvarsJson => Self::TfvarsJson,
            Format::Env => Self::Env,
        }
    }
}

/// Format given by a flag, or else by the file's name.
pub(crate) fn format_of(flag: Option<Format>, file: &Path) -> Option<VariableFormat> {
    flag.map(Into::into).or_else(|| VariableFormat::of_name(file.file_name()?.to_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_counts_more_than_the_name() {
        let file = Path::new("a/prod.auto.tfvars");
        assert_eq!(format_of(None, file), Some(VariableFormat::Tfvars));
        assert_eq!(format_of(Some(Format::Env), file), Some(VariableFormat::Env));
        assert_eq!(format_of(None, Path::new("variables.txt")), None);
    }
}
