//! The agent: takes phases of runs from a server, executes them with terraform or tofu, and sends back what came of it.
//!
//! [`run`] is the whole agent. A server embeds it by giving it a [`Dial`] into its own router; the binary `taco-agent`
//! gives it one over the network. It never sees the bucket, so a stolen token opens no more than the pool's own work.

mod apply_result;
mod archive;
mod backend_override;
mod cli_configuration;
pub mod command_line;
mod confinement;
mod connection;
mod context;
mod control;
mod dial;
mod engine;
mod engine_download;
mod engine_memory;
mod engine_trust;
mod engine_version;
mod environment;
mod execute;
mod file_body;
mod file_of_run;
#[doc(hidden)]
pub mod fuzzing;
mod journal;
pub mod lease;
mod log_file;
mod log_upload;
mod mask;
mod opa_program;
mod options;
mod phase;
mod phase_requests;
mod plan_result;
pub mod platform;
mod policies;
mod processes;
mod provider_schemas;
mod proxy;
mod redacted_plan;
mod resend;
mod retry;
mod running;
pub mod secrets;
mod set_up;
mod shutdown;
mod state_upload;
pub mod supervise;
mod tls;
mod users;
mod variables;
mod work_loop;
mod workdir;

pub use dial::{ByteStream, Dial, Stream};
pub use engine_trust::EngineTrust;
pub use options::{EngineMirror, Options, ProviderMirror, RunEnvironment};
pub use shutdown::Shutdown;
pub use users::RunUsers;
pub use work_loop::{Error, run};
