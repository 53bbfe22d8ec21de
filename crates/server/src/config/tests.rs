use std::fs;

use clap::{Args, Command, FromArgMatches};
use tempfile::TempDir;

use super::*;

/// A place to load a configuration in.
struct Place {
    directory: TempDir,
    process_env: ProcessEnv,
    flags: ServerFlags,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let process_env = ProcessEnv {
            variables: BTreeMap::from([("HOME".to_owned(), "/home/ada".to_owned())]),
            working_directory: directory.path().to_owned(),
            log_on_terminal: false,
        };
        Self { directory, process_env, flags: ServerFlags::default() }
    }

    fn with_flags(mut self, flags: &[&str]) -> Self {
        let words = ["taco"].iter().chain(flags);
        let matches = ServerFlags::augment_args(Command::new("taco")).try_get_matches_from(words).expect("they parse");
        self.flags = ServerFlags::from_arg_matches(&matches).expect("they are read");
        self
    }

    fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.process_env.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    fn without_variable(mut self, name: &str) -> Self {
        self.process_env.variables.remove(name);
        self
    }

    fn with_file(self, name: &str, content: &str) -> Self {
        fs::write(self.directory.path().join(name), content).expect("it is written");
        self
    }

    fn load(&self) -> Result<Configuration, ConfigError> {
        Configuration::load(&self.flags, &self.process_env)
    }

    fn settings(&self) -> Settings {
        self.load().expect("it loads").settings
    }

    /// The value and its origin, as `taco config show` prints them.
    fn shown(&self, key: &str) -> (Option<String>, String) {
        let configuration = self.load().expect("it loads");
        let entry = configuration.entries.iter().find(|entry| entry.setting.key == key).expect("it is a setting");
        (entry.shown().map(str::to_owned), entry.origin.to_string())
    }

    fn complaint(&self) -> String {
        let complaint = self.load().expect_err("it is refused").to_string();
        assert!(!complaint.contains('\n'), "one line: {complaint}");
        complaint
    }
}

#[test]
fn flags_go_before_variables_before_the_file_before_defaults() {
    let place = Place::new();
    assert_eq!(place.shown("listen"), (Some("127.0.0.1:8080".into()), "default".into()));
    let place = place.with_file("taco.toml", "# ours\nlisten = \"127.0.0.1:1\"\n");
    assert_eq!(place.shown("listen"), (Some("127.0.0.1:1".into()), "taco.toml:2".into()));
    let place = place.with_variable("TACO_LISTEN", "127.0.0.1:2");
    assert_eq!(place.shown("listen"), (Some("127.0.0.1:2".into()), "env TACO_LISTEN".into()));
    let place = place.with_flags(&["--listen", "127.0.0.1:3"]);
    assert_eq!(place.shown("listen"), (Some("127.0.0.1:3".into()), "flag --listen".into()));
}

#[test]
fn nothing_has_to_be_set() {
    let settings = Place::new().settings();
    assert_eq!(settings.bucket.as_str(), "file:///home/ada/.local/share/taco/bucket");
    assert_eq!(settings.url.to_string(), "http://127.0.0.1:8080");
    assert_eq!(settings.agent_concurrency, 2);
    assert_eq!(settings.log_format, LogFormat::Json);
}

#[test]
fn defaults_follow_the_surroundings() {
    let settings = Place::new().with_variable("XDG_DATA_HOME", "/data").settings();
    assert_eq!(settings.bucket.as_str(), "file:///data/taco/bucket");
    let settings = Place::new().with_variable("XDG_DATA_HOME", "relative").settings();
    assert_eq!(settings.bucket.as_str(), "file:///home/ada/.local/share/taco/bucket");
    let settings = Place::new().with_variable("TACO_LISTEN", "[::]:80").settings();
    assert_eq!(settings.url.to_string(), "http://localhost", "80 is what http means");
    let complaint = Place::new().without_variable("HOME").complaint();
    assert!(complaint.contains("bucket is not set") && complaint.contains("TACO_BUCKET"), "{complaint}");
}

#[test]
fn every_example_is_a_legal_value_in_every_source() {
    for setting in TABLE {
        let place = Place::new().with_variable(&setting.variable(), setting.example);
        assert_eq!(place.shown(setting.key).1, format!("env {}", setting.variable()));
        let quoted = toml::Value::from(setting.example);
        let place = Place::new().with_file("taco.toml", &format!("{} = {quoted}", setting.key));
        assert_eq!(place.shown(setting.key).1, "taco.toml:1");
        let place = Place::new().with_file("value", setting.example);
        let value = if setting.secret { "value" } else { setting.example };
        let place = place.with_flags(&[&format!("--{}", setting.flag()), value]);
        assert_eq!(place.shown(setting.key).1, format!("flag --{}", setting.flag()));
    }
}

#[test]
fn a_bad_value_is_refused_by_name_origin_and_example() {
    for (variable, value) in [
        ("TACO_LISTEN", "8080"),
        ("TACO_LISTEN", "localhost:8080"),
        ("TACO_METRICS_LISTEN", ":9090"),
        ("TACO_URL", "taco.example.com"),
        ("TACO_URL", "ftp://taco.example.com"),
        ("TACO_URL", "https://taco.example.com/taco"),
        ("TACO_URL", "https://taco.example.com/?a=b"),
        ("TACO_URL", "https://ada:secret@taco.example.com"),
        ("TACO_BUCKET", "/srv/taco"),
        ("TACO_BUCKET", "file://srv/taco"),
        ("TACO_BUCKET", "s3://"),
        ("TACO_BUCKET", "ftp://somewhere"),
        ("TACO_S3_ENDPOINT", "minio:9000"),
        ("TACO_AGENT_CONCURRENCY", "-1"),
        ("TACO_AGENT_CONCURRENCY", "many"),
        ("TACO_LOG_FORMAT", "xml"),
        ("TACO_LOG_LEVEL", "inof"),
        ("TACO_LOG_LEVEL", "taco_ledger=loud"),
        ("TACO_S3_REGION", ""),
    ] {
        let complaint = Place::new().with_variable(variable, value).complaint();
        let (setting, _) = layer::recognise(&variable["TACO_".len()..].to_ascii_lowercase()).expect("it is a setting");
        let begin = format!("env {variable}: {} {value:?} ", setting.key);
        assert!(complaint.starts_with(&begin), "{complaint}");
        assert!(complaint.ends_with(&format!("; for example {}", setting.example)), "{complaint}");
    }
}

#[test]
fn a_long_or_strange_value_is_shown_short_and_on_one_line() {
    let complaint = Place::new().with_variable("TACO_LISTEN", &format!("a\n{}", "x".repeat(500))).complaint();
    assert!(complaint.contains("\"a\\nxxx") && complaint.len() < 250, "{complaint}");
}

#[test]
fn an_unknown_name_is_refused_with_its_place_and_the_nearest_name() {
    let complaint = Place::new().with_variable("TACO_LISTN", "x").complaint();
    assert_eq!(complaint, "env TACO_LISTN is not a setting of taco; did you mean TACO_LISTEN?");
    let complaint = Place::new().with_variable("TACO_SECRET_KEYFILE", "x").complaint();
    assert_eq!(complaint, "env TACO_SECRET_KEYFILE is not a setting of taco; did you mean TACO_SECRET_KEY_FILE?");
    let complaint = Place::new().with_variable("TACO_DATABASE", "x").complaint();
    assert_eq!(complaint, "env TACO_DATABASE is not a setting of taco");
    let complaint = Place::new().with_variable("TACO_LISTEN_FILE", "x").complaint();
    assert_eq!(complaint, "env TACO_LISTEN_FILE is not a setting of taco; did you mean TACO_LISTEN?");
    let complaint = Place::new().with_file("taco.toml", "\nlog-level = \"info\"\nzzz = 1\n").complaint();
    assert_eq!(complaint, "taco.toml:2: \"log-level\" is not a setting of taco; did you mean log_level?");
    let complaint = Place::new().with_file("taco.toml", "[s3]\nregion = \"x\"\n").complaint();
    assert_eq!(complaint, "taco.toml:1: \"s3\" is not a setting of taco");
}

#[test]
fn variables_of_others_are_left_alone() {
    let mut place = Place::new();
    for name in ["TACO_HOST", "TACO_TOKEN", "TACO_ORG", "TACO_TOOLS", "TACO_TEST_S3_PORT"] {
        place = place.with_variable(name, "anything");
    }
    for (name, value) in [
        ("TACO_SERVICE_HOST", "10.0.0.1"),
        ("TACO_SERVICE_PORT", "80"),
        ("TACO_SERVICE_PORT_HTTP", "80"),
        ("TACO_PORT", "tcp://10.0.0.1:80"),
        ("TACO_PORT_80_TCP", "tcp://10.0.0.1:80"),
        ("TACO_PORT_80_TCP_ADDR", "10.0.0.1"),
        ("TACO_AGENT_SERVICE_HOST", "10.0.0.2"),
        ("TACO_AGENT_PORT", "tcp://10.0.0.2:80"),
    ] {
        place = place.with_variable(name, value);
    }
    place.settings();
    let complaint = Place::new().with_variable("TACO_PORT", "80").complaint();
    assert!(complaint.contains("TACO_PORT is not a setting"), "{complaint}");
}

#[test]
fn secrets_can_lie_in_files() {
    let place = Place::new().with_file("key", "s3cret\n").with_variable("TACO_SECRET_KEY_FILE", "key");
    assert_eq!(place.settings().secret_key.expect("it is set").expose(), "s3cret");
    assert_eq!(place.shown("secret_key"), (Some("(hidden)".into()), "env TACO_SECRET_KEY_FILE".into()));
    let place = Place::new().with_file("key", "one\ntwo\r\n").with_file("taco.toml", "site_token_file = \"key\"");
    assert_eq!(place.settings().site_token.expect("it is set").expose(), "one\ntwo", "only the last line end goes");

    let complaint = Place::new().with_variable("TACO_SECRET_KEY_FILE", "/none").complaint();
    assert!(complaint.starts_with("env TACO_SECRET_KEY_FILE: the file /none cannot be read: "), "{complaint}");
    let complaint = Place::new().with_file("key", "\n").with_variable("TACO_SECRET_KEY_FILE", "key").complaint();
    assert!(complaint.starts_with("env TACO_SECRET_KEY_FILE: secret_key"), "{complaint}");
}

#[test]
fn a_secret_given_twice_in_one_place_is_refused() {
    let place = Place::new().with_variable("TACO_SECRET_KEY", "a").with_variable("TACO_SECRET_KEY_FILE", "b");
    let expected = "env TACO_SECRET_KEY and env TACO_SECRET_KEY_FILE both give secret_key; keep one of them";
    assert_eq!(place.complaint(), expected);
    let place = Place::new().with_file("taco.toml", "site_token = \"a\"\nsite_token_file = \"b\"");
    assert_eq!(place.complaint(), "taco.toml:1 and taco.toml:2 both give site_token; keep one of them");
    // In two places, the usual order decides.
    let place =
        Place::new().with_file("taco.toml", "site_token_file = \"absent\"").with_variable("TACO_SITE_TOKEN", "a");
    assert_eq!(place.settings().site_token.expect("it is set").expose(), "a");
}

#[test]
fn secrets_do_not_show_in_debug_output() {
    let mut place = Place::new();
    for setting in TABLE.iter().filter(|setting| setting.secret) {
        place = place.with_variable(&setting.variable(), "s3cret");
    }
    let configuration = place.load().expect("it loads");
    assert!(!format!("{configuration:?}").contains("s3cret"));
    assert!(configuration.entries.iter().all(|entry| entry.shown() != Some("s3cret")));
}

#[test]
fn the_file_can_be_named_and_must_then_be_there() {
    let place =
        Place::new().with_file("other.toml", "agent_concurrency = 7").with_variable("TACO_CONFIG", "other.toml");
    assert_eq!(place.settings().agent_concurrency, 7);
    let place = place.with_flags(&["--config", "third.toml"]);
    assert!(place.complaint().starts_with("flag --config: the file third.toml cannot be read: "));
    let place = Place::new().with_variable("TACO_CONFIG", "none.toml");
    assert!(place.complaint().starts_with("env TACO_CONFIG: the file none.toml cannot be read: "));
}

#[test]
fn a_broken_file_is_refused_with_the_line() {
    let complaint = Place::new().with_file("taco.toml", "listen = \"127.0.0.1:1\"\nurl = oops\n").complaint();
    assert!(complaint.starts_with("taco.toml:2: "), "{complaint}");
    let complaint = Place::new().with_file("taco.toml", "listen = [\"127.0.0.1:1\"]").complaint();
    assert_eq!(complaint, "taco.toml:1: listen has to be one text or number; for example 0.0.0.0:8080");
    let complaint = Place::new().with_file("taco.toml", "listen = \"a\"\nlisten = \"b\"").complaint();
    assert!(complaint.starts_with("taco.toml:2: duplicate key"), "{complaint}");
}

#[test]
fn rust_log_sets_the_level_unless_ours_does() {
    let place = Place::new().with_variable("RUST_LOG", "taco_ledger=debug");
    assert_eq!(place.shown("log_level"), (Some("taco_ledger=debug".into()), "env RUST_LOG".into()));
    let place = place.with_variable("TACO_LOG_LEVEL", "warn");
    assert_eq!(place.shown("log_level"), (Some("warn".into()), "env TACO_LOG_LEVEL".into()));
}

#[test]
fn requests_are_logged_where_nobody_watches() {
    let mut place = Place::new();
    assert_eq!(place.shown("log_level"), (Some("info".into()), "default".into()));
    place.process_env.log_on_terminal = true;
    assert_eq!(place.shown("log_level"), (Some("info,taco_server::access=warn".into()), "default".into()));
    let place = place.with_variable("TACO_LOG_LEVEL", "info");
    assert_eq!(place.shown("log_level").0, Some("info".into()), "whoever asks for them sees them");
}

#[test]
fn the_documentation_lists_every_setting() {
    let mut table = String::from("| `taco.toml` | variable | meaning | default |\n|---|---|---|---|\n");
    for setting in TABLE {
        let secret = if setting.secret { " *Secret.*" } else { "" };
        let default = setting.default.described().unwrap_or("");
        let row =
            [format!("`{}`", setting.key), format!("`{}`", setting.variable()), setting.help().to_owned() + secret];
        table += &format!("| {} | {default} |\n", row.join(" | "));
    }
    let documented = include_str!("../../../../docs/configuration.md");
    assert!(documented.contains(&table), "put this table into docs/configuration.md:\n\n{table}");
}
