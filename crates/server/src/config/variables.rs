//! Settings from `TACO_*` variables.

use super::layer::{Layer, Origin};
use super::{ConfigError, ProcessEnv};

/// Names the file that would otherwise be `taco.toml`.
pub(super) const CONFIG_FILE: &str = "TACO_CONFIG";

/// Belong to the commands for people, which talk to a server and share this environment with it.
const OF_OTHERS: &[&str] = &["TACO_HOST", "TACO_TOKEN", "TACO_ORG", "TACO_TOOLS"];

pub(super) fn layer(process_env: &ProcessEnv) -> Result<Layer, ConfigError> {
    let mut layer = Layer::default();
    for (name, value) in &process_env.variables {
        let Some(short) = name.strip_prefix("TACO_") else { continue };
        let meant_for_us = name != CONFIG_FILE
            && !OF_OTHERS.contains(&name.as_str())
            && !short.starts_with("TEST_")
            && !is_of_kubernetes(short, value);
        if meant_for_us {
            layer.add(&short.to_ascii_lowercase(), value.clone(), Origin::Variable(name.clone()))?;
        }
    }
    // What every program in Rust listens to, so it is what a person tries first.
    if let Some(filter) = process_env.variables.get("RUST_LOG").filter(|filter| !filter.is_empty())
        && !layer.has("log_level")
    {
        layer.add("log_level", filter.clone(), Origin::Variable("RUST_LOG".to_owned()))?;
    }
    Ok(layer)
}

/// Kubernetes announces a service called `taco` to every container in its namespace, as `TACO_SERVICE_HOST`,
/// `TACO_PORT=tcp://…`, `TACO_PORT_80_TCP_ADDR` and so on.
fn is_of_kubernetes(short: &str, value: &str) -> bool {
    let is_port = short == "PORT" || short.ends_with("_PORT");
    let of_service = |word: &str| short.starts_with(word) || short.contains(&format!("_{word}"));
    of_service("SERVICE_HOST")
        || of_service("SERVICE_PORT")
        || (is_port && value.contains("://"))
        || ["_TCP", "_UDP", "_SCTP"].iter().any(|protocol| short.contains(protocol) && of_service("PORT_"))
}
