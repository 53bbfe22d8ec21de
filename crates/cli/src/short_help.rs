//! Help that does not repeat the same flags in every command.

use clap::Command;

/// Flags that all commands for people have, described once per group of commands.
const GLOBAL_FLAGS: &str = "\
Global flags:
      --host <HOST>     Server [env: TACO_HOST] [default: where you logged in]
      --org <NAME>      Organization [env: TACO_ORG] [default: of this directory]
      --ws <NAME>       Workspace, or ORGANIZATION/WORKSPACE [default: of this directory]
      --json            Print JSON, with the API's attribute names
  -q, --quiet           Print less: no messages, and of a run its status alone
  -v, --verbose         Say which server and token are used; -vv shows requests too
      --color <WHEN>    auto, always or never [env: NO_COLOR, CLICOLOR_FORCE]
      --no-input        Never prompt; fail where an answer is needed
A directory has an organization and a workspace by its .taco.toml or `cloud` block.";

/// The same command line, where global flags stand once: in the help of each group, and not in those below it.
pub fn with_short_help(command: Command) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|group| group.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, shortened))
}

fn shortened(group: Command) -> Command {
    if !has_global_flags(&group) {
        return below(group);
    }
    let after = group.get_after_help().map(|text| format!("\n\n{text}")).unwrap_or_default();
    let path = group.get_name().to_owned();
    let group = hide_global_flags(group).after_help(format!("{}{after}", group_flags(&path)));
    let hint = format!("Global flags such as --host, --org, --ws and --json: see `taco {path} --help`");
    let names: Vec<String> = group.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    names.into_iter().fold(group, |group, name| group.mut_subcommand(name, |verb| with_hint(verb, &hint)))
}

/// `taco audit`, of whose commands only some ask a server.
fn below(group: Command) -> Command {
    let names: Vec<String> = group.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    let wanted = |group: &Command, name: &str| group.find_subcommand(name).is_some_and(has_global_flags);
    names.into_iter().fold(
        group,
        |group, name| {
            if wanted(&group, &name) { group.mut_subcommand(name, shortened) } else { group }
        },
    )
}

/// Those of commands without an organization or a workspace are fewer.
fn group_flags(name: &str) -> String {
    let without: &[&str] = match name {
        "login" | "logout" => &["--host", "--org", "--ws", "A directory"],
        _ => &[],
    };
    GLOBAL_FLAGS
        .lines()
        .filter(|line| !without.iter().any(|flag| line.contains(&format!("{flag} "))))
        .collect::<Vec<_>>()
        .join("\n")
}

fn with_hint(verb: Command, hint: &str) -> Command {
    let names: Vec<String> = verb.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    let verb = names.into_iter().fold(verb, |verb, name| verb.mut_subcommand(name, |verb| with_hint(verb, hint)));
    verb.after_help(hint.to_owned())
}

fn has_global_flags(command: &Command) -> bool {
    command.get_arguments().any(|argument| argument.is_global_set())
}

fn hide_global_flags(command: Command) -> Command {
    let ids: Vec<String> = command
        .get_arguments()
        .filter(|argument| argument.is_global_set())
        .map(|argument| argument.get_id().to_string())
        .collect();
    ids.into_iter().fold(command, |command, id| command.mut_arg(id, |argument| argument.hide(true)))
}
