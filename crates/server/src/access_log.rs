//! The lines of the access log as JSON. Every request has one, so they are written straight away; the formatter for all
//! other lines would build trees of values first.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{Format, Json, Writer};
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// Target of events of the access log.
pub(crate) const ACCESS: &str = "taco_server::access";

/// Formats events as JSON: those of the access log itself, all others as `others` does.
pub(crate) struct JsonLines {
    pub(crate) others: Format<Json>,
}

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        if event.metadata().target() != ACCESS {
            return self.others.format_event(context, writer, event);
        }
        writer.write_str("{\"timestamp\":\"")?;
        SystemTime.format_time(&mut writer)?;
        write!(writer, "\",\"level\":\"{}\"", event.metadata().level())?;
        let mut fields = Fields { writer: &mut writer, outcome: Ok(()) };
        event.record(&mut fields);
        fields.outcome?;
        write!(writer, ",\"target\":\"{ACCESS}\"")?;
        if let Some(span) = context.lookup_current() {
            writer.write_str(",\"span\":{")?;
            // They are an object already, and were made when the span began.
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<N>>().map_or("", |fields| fields.as_str());
            let fields = fields.trim_start_matches('{').trim_end_matches('}');
            let comma = if fields.is_empty() { "" } else { "," };
            write!(writer, "{fields}{comma}\"name\":\"{}\"}}", span.name())?;
        }
        writer.write_str("}\n")
    }
}

/// Writes each field as it comes.
struct Fields<'a, 'w> {
    writer: &'a mut Writer<'w>,
    outcome: fmt::Result,
}

impl Fields<'_, '_> {
    fn write(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        if self.outcome.is_ok() {
            self.outcome = write!(self.writer, ",\"{}\":{value}", field.name());
        }
    }
}

impl Visit for Fields<'_, '_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.write(field, format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        // Our routes, methods and statuses need no escapes; but a route is anybody's text.
        let is_plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\');
        match is_plain {
            true => self.write(field, format_args!("\"{value}\"")),
            false => self.write(field, format_args!("{}", serde_json::Value::from(value))),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.write(field, format_args!("{}", serde_json::Value::from(format!("{value:?}"))));
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::fmt::{self, MakeWriter};
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::{Layer as _, registry};

    use super::*;

    #[derive(Clone, Default)]
    struct Text(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Text {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("nobody panicked").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Text {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    impl Text {
        /// The lines without the time, at which each begins.
        fn lines(&self) -> Vec<String> {
            let text = String::from_utf8(self.0.lock().expect("nobody panicked").clone()).expect("text");
            let timeless = |line: &str| line.split_once("Z\",").expect("a time").1.to_owned();
            text.lines().map(timeless).collect()
        }
    }

    #[test]
    fn a_line_is_the_one_that_the_formatter_for_all_others_would_write() {
        let (ours, theirs) = (Text::default(), Text::default());
        let json = |text: &Text| {
            let layer = fmt::layer().with_writer(text.clone()).json();
            layer.flatten_event(true).with_current_span(true).with_span_list(false)
        };
        let own = json(&ours).map_event_format(|others| JsonLines { others });
        let subscriber = registry().with(vec![own.boxed(), json(&theirs).boxed()]);
        tracing::subscriber::with_default(subscriber, || {
            for (route, status, ms) in [
                ("/api/v2/ping", "204", 0.0),
                ("/api/v2/organizations/{organization}", "200", 12.345),
                ("/\"quoted\\\u{e9}\n", "gone", 1.0),
                ("unmatched", "404", 1_234_567.0),
            ] {
                let log = || tracing::info!(target: ACCESS, method = "GET", route, status, ms);
                log();
                tracing::error_span!("request", request_id = "0123-a.b:c=d+e/f").in_scope(log);
                tracing::error_span!("request").in_scope(log);
            }
            tracing::warn!(route = "elsewhere", "not of the access log");
        });
        assert_eq!(ours.lines(), theirs.lines());
        assert_eq!(ours.lines().len(), 13);
    }
}
