//! Log lines go to stderr, as text for a person or as JSON for a machine. Panics become log lines too.

use std::io::{self, IsTerminal};
use std::panic;
use std::sync::OnceLock;

use taco_agent::secrets::may_be_logged;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, registry};

use crate::access_log::JsonLines;
use crate::config::{LogFormat, Settings};
use crate::log_writer::LogWriter;

static WRITER: OnceLock<LogWriter> = OnceLock::new();

/// Writes what was not written yet when it is dropped: at the end of the process.
#[must_use = "what is dropped at once cannot write the last lines"]
pub(crate) struct Logging(());

impl Drop for Logging {
    fn drop(&mut self) {
        flush();
    }
}

/// Writes what was not written yet, for who ends the process without more ado.
pub(crate) fn flush() {
    if let Some(writer) = WRITER.get() {
        writer.flush();
    }
}

/// Starts the logging of this process. A second call changes nothing.
pub(crate) fn start(settings: &Settings) -> Logging {
    let writer = WRITER.get_or_init(LogWriter::to_stderr).clone();
    let lines = fmt::layer().with_writer(writer);
    let lines = match settings.log_format {
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).boxed(),
        // The innermost span has what identifies a request; listing all of them would say it twice.
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true).with_current_span(true).with_span_list(false);
            lines.map_event_format(|others| JsonLines { others }).boxed()
        }
    };
    let lines = lines.with_filter(settings.log_level.targets());
    if registry().with(lines).with(filter_fn(may_be_logged)).try_init().is_ok() {
        panic::set_hook(Box::new(|panic| {
            let place = panic.location().map(ToString::to_string);
            let message = panic.payload_as_str().unwrap_or("(no message)");
            tracing::error!(event = "panic", place, message, "panic");
        }));
    }
    Logging(())
}
