//! Verbosity, format and interactivity of a command: flags of every command.

use std::io::{self, IsTerminal};

use clap::{ArgAction, Args, ValueEnum};

use crate::process_env::ProcessEnv;

#[derive(Args, Clone, Default, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputFlags {
    /// Print JSON, with the API's attribute names
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print less: no messages, and of a run its status alone
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say which server and token are used; -vv shows requests too
    #[arg(long, short, global = true, action = ArgAction::Count)]
    verbose: u8,
    /// Show each request, without tokens; same as -vv
    #[arg(long, global = true, hide_short_help = true)]
    debug: bool,
    /// When to use colours [env: NO_COLOR, CLICOLOR_FORCE]
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    color: Color,
    /// Never prompt; fail where an answer is needed
    #[arg(long, global = true)]
    pub(crate) no_input: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, ValueEnum, Debug)]
enum Color {
    /// On a terminal
    #[default]
    Auto,
    Always,
    Never,
}

impl OutputFlags {
    pub(crate) fn shows_target(&self) -> bool {
        self.verbose > 0 || self.debug
    }

    pub(crate) fn shows_requests(&self) -> bool {
        self.verbose > 1 || self.debug
    }

    pub(crate) fn colours(&self, process_env: &ProcessEnv) -> bool {
        self.color.on(io::stdout().is_terminal(), process_env)
    }

    /// Colours of prompts and messages.
    pub(crate) fn colours_of_errors(&self, process_env: &ProcessEnv) -> bool {
        self.color.on(io::stderr().is_terminal(), process_env)
    }
}

impl Color {
    fn on(self, terminal: bool, process_env: &ProcessEnv) -> bool {
        let forced = || process_env.variable("CLICOLOR_FORCE").is_some_and(|value| value != "0");
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto if process_env.variable("NO_COLOR").is_some() => false,
            Self::Auto => terminal || forced(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_decides_about_colours_before_variables_before_the_terminal() {
        let on = |color: Color, terminal: bool, variables: &[(&str, &str)]| {
            let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            color.on(terminal, &ProcessEnv { variables, ..ProcessEnv::default() })
        };
        let (none, force, never) = ([], [("CLICOLOR_FORCE", "1")], [("NO_COLOR", "1")]);
        assert!(on(Color::Auto, true, &none) && !on(Color::Auto, false, &none));
        assert!(on(Color::Auto, false, &force) && !on(Color::Auto, false, &[("CLICOLOR_FORCE", "0")]));
        assert!(!on(Color::Auto, true, &never) && on(Color::Auto, true, &[("NO_COLOR", "")]));
        assert!(!on(Color::Auto, true, &[never, force].concat()), "who wants none gets none");
        assert!(on(Color::Always, false, &never) && !on(Color::Never, true, &force));
    }
}
