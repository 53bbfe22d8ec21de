//! `taco completion`

use clap::Args;
use clap_complete::{Shell, generate};

use crate::failure::Failure;
use crate::output;

/// Generate shell completions
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  taco completion bash > ~/.local/share/bash-completion/completions/taco
  taco completion zsh > ~/.zfunc/_taco
  taco completion fish > ~/.config/fish/completions/taco.fish")]
pub struct Arguments {
    /// Shell to generate them for
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, mut whole: clap::Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    generate(arguments.shell, &mut whole, "taco", &mut script);
    output::bytes(&script)
}
