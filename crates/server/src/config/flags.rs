//! Settings as flags, made from the table.

use std::marker::PhantomData;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};

use super::layer::{Layer, Origin};
use super::value::SWITCH;
use super::{ConfigError, Group, Setting, TABLE};

/// The settings that were given as flags.
#[derive(Clone, Default, Debug)]
pub struct Flags {
    config_file: Option<PathBuf>,
    given: Vec<(&'static Setting, String)>,
}

impl Flags {
    /// Settings by their keys, as a program gives them to itself.
    pub(crate) fn of<'a>(config_file: Option<PathBuf>, given: impl Iterator<Item = (&'a str, String)>) -> Self {
        let setting = |key: &str| TABLE.iter().find(|setting| setting.key == key).expect("it is a setting");
        Self { config_file, given: given.map(|(key, value)| (setting(key), value)).collect() }
    }

    pub(super) fn config_file(&self) -> Option<&Path> {
        self.config_file.as_deref()
    }

    pub(super) fn layer(&self) -> Result<Layer, ConfigError> {
        let mut layer = Layer::default();
        for (setting, value) in &self.given {
            let name = if setting.secret { format!("{}_file", setting.key) } else { setting.key.to_owned() };
            layer.add(&name, value.clone(), Origin::Flag(setting.flag()))?;
        }
        Ok(layer)
    }
}

/// The flags of a command that runs a whole server.
pub type ServerFlags = FlagsIn<WholeServer>;

/// The flags of a command that only looks at the bucket.
pub type BucketFlags = FlagsIn<OnlyBucket>;

/// Settings that a command offers as flags. From other sources it takes all of them.
pub trait Scope {
    fn includes(setting: &Setting) -> bool;
}

#[derive(Clone, Debug)]
pub struct WholeServer;

impl Scope for WholeServer {
    fn includes(_: &Setting) -> bool {
        true
    }
}

#[derive(Clone, Debug)]
pub struct OnlyBucket;

impl Scope for OnlyBucket {
    fn includes(setting: &Setting) -> bool {
        setting.group == Group::Bucket || setting.key.starts_with("log_")
    }
}

/// [`Flags`] as clap sees them; flatten it into a command's arguments.
#[derive(Clone, Debug)]
pub struct FlagsIn<S>(Flags, PhantomData<S>);

impl<S> Default for FlagsIn<S> {
    fn default() -> Self {
        Self(Flags::default(), PhantomData)
    }
}

impl<S> Deref for FlagsIn<S> {
    type Target = Flags;

    fn deref(&self) -> &Flags {
        &self.0
    }
}

const CONFIG: &str = "config";

impl<S: Scope> Args for FlagsIn<S> {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new(CONFIG)
            .long(CONFIG)
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help("File with settings [env: TACO_CONFIG] [default: taco.toml, if there is one]");
        let settings = TABLE.iter().filter(|setting| S::includes(setting)).map(|setting| {
            let arg = Arg::new(setting.key)
                .long(setting.flag())
                .value_name(setting.shape)
                .help(help_of(setting))
                .help_heading(setting.group.title());
            if setting.shape == SWITCH { arg.num_args(0..=1).default_missing_value("true") } else { arg }
        });
        command.arg(config).args(settings)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<S: Scope> FromArgMatches for FlagsIn<S> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let config_file = matches.get_one(CONFIG).cloned();
        let given = TABLE
            .iter()
            .filter(|setting| S::includes(setting))
            .filter_map(|setting| Some((setting, matches.get_one::<String>(setting.key)?.clone())))
            .collect();
        Ok(Self(Flags { config_file, given }, PhantomData))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn help_of(setting: &Setting) -> String {
    let variable = setting.variable();
    let variables = if setting.secret { format!("{variable} or {variable}_FILE") } else { variable };
    let help = setting.help().trim_end_matches('.');
    let file = if setting.secret { ". FILE holds it" } else { "" };
    let default = setting.default.described().map(|text| format!(" [default: {text}]")).unwrap_or_default();
    format!("{help}{file} [env: {variables}]{default}")
}
