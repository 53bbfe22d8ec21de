//! A phase's log as people see it: its last part on the page, earlier parts on demand, all of it as plain text.

use std::convert::Infallible;

use askama::Template;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt as _, stream};
use serde::Deserialize;
use taco_control_plane::{Error, RunView};
use taco_domain::phase::PhaseKind;

use crate::error::PageError;
use crate::run::log_lines::{LinePlace, breaks_in, line_at, place_of};
use crate::run::log_text::LogText;
use crate::run::page::{RunPath, find};
use crate::run::progress::Facts;
use crate::visitor::Visitor;
use crate::{Web, page};

/// So much of a log is looked at for one part of it: more than its lines mostly need.
const LOG_WINDOW_BYTES: u64 = 512 * 1024;
/// So many lines are shown at once.
const MAX_SHOWN_LINES: usize = 2000;
/// Chunk size for reading a whole log.
const LOG_CHUNK_BYTES: usize = 1024 * 1024;

/// A part of a log.
#[derive(Debug)]
pub(crate) struct LogPart {
    /// Its bytes within the log.
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Offset of the log's end.
    pub(crate) end: u64,
    pub(crate) html: String,
    /// The anchor of the first line that tells of an error.
    pub(crate) first_error: Option<String>,
    /// True if the log goes on after it.
    pub(crate) has_later: bool,
    /// A line was asked for, and it is not known yet where it is.
    pub(crate) misses_line: bool,
    /// Facts from its lines, where they are JSON.
    pub(crate) facts: Facts,
}

impl LogPart {
    pub(crate) fn has_earlier(&self) -> bool {
        self.from > 0
    }

    /// From where on its log is followed. What was left out before that is not for the stream of events.
    pub(crate) fn goes_on_at(&self) -> u64 {
        if self.has_later { self.end } else { self.to }
    }
}

/// A line of which is known where it begins.
struct KnownLine {
    number: u64,
    begins: u64,
}

/// Text in place of a log that was damaged in the bucket.
pub(crate) const DAMAGED: &str = "This log is damaged in the storage and cannot be shown. Whoever runs this site finds the \
                                  details in the server's log, and `taco doctor` tells what to do.\n";

/// The last lines of a log before `before`, or before its end.
pub(crate) async fn part(web: &Web, view: &RunView, kind: PhaseKind, before: Option<u64>) -> Result<LogPart, Error> {
    let end = web.control_plane.log_end(view, kind).await?;
    or_damaged(part_before(web, view, kind, before, end, None).await, kind, end)
}

/// A damaged log says so in its place: the rest of the page is as good as ever.
fn or_damaged(part: Result<LogPart, Error>, kind: PhaseKind, end: u64) -> Result<LogPart, Error> {
    let Err(Error::Corrupt(cause)) = part else { return part };
    tracing::error!(event = "log_corrupt", %cause, "a log is damaged");
    let mut text = LogText::from_line(kind, None);
    let mut html = text.push(DAMAGED.as_bytes());
    html.push_str(&text.finish());
    let (first_error, facts) = (text.first_error(), Facts::default());
    Ok(LogPart { from: 0, to: end, end, html, first_error, has_later: false, misses_line: false, facts })
}

async fn part_before(
    web: &Web,
    view: &RunView,
    kind: PhaseKind,
    before: Option<u64>,
    end: u64,
    known: Option<KnownLine>,
) -> Result<LogPart, Error> {
    let to = before.map_or(end, |before| before.min(end));
    let (from, bytes) = window(web, view, kind, to).await?;
    let skipped = first_shown(&bytes, from == 0);
    let shown = &bytes[skipped..];
    // What is written at the moment goes on in the stream of events, from its line's beginning.
    let whole = match view.run.phase(kind).status.is_final() || before.is_some() {
        true => shown.len(),
        false => shown.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1),
    };
    let from = from + skipped as u64;
    let known = known.and_then(|line| {
        let between = shown.get(..usize::try_from(line.begins.checked_sub(from)?).ok()?)?;
        line.number.checked_sub(breaks_in(between))
    });
    let first = match known {
        Some(number) => Some(number),
        None => line_at(web, view, kind, from).await?,
    };
    let mut text = LogText::from_line(kind, first);
    let mut html = text.push(&shown[..whole]);
    html.push_str(&text.finish());
    let mut facts = Facts::default();
    facts.push(&bytes);
    Ok(LogPart {
        from,
        to: from + whole as u64,
        end,
        html,
        first_error: text.first_error(),
        has_later: to < end,
        misses_line: false,
        facts,
    })
}

/// The bytes before `to` that are looked at for one part of a log, and where they begin.
async fn window(web: &Web, view: &RunView, kind: PhaseKind, to: u64) -> Result<(u64, Vec<u8>), Error> {
    let from = to.saturating_sub(LOG_WINDOW_BYTES);
    let limit = usize::try_from(to - from).unwrap_or(usize::MAX);
    let bytes = web.control_plane.log_part(view, kind, from, limit).await?;
    web.lines.learn(view, kind, from, &bytes);
    Ok((from, bytes))
}

/// Facts from the lines before `to`, where they are JSON.
pub(crate) async fn facts_before(web: &Web, view: &RunView, kind: PhaseKind, to: u64) -> Result<Facts, Error> {
    let bytes = match window(web, view, kind, to).await {
        Ok((_, bytes)) => bytes,
        // The page says so in the log's place.
        Err(Error::Corrupt(_)) => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut facts = Facts::default();
    facts.push(&bytes);
    Ok(facts)
}

/// The part of a log in which a line is that someone has a link to.
pub(crate) async fn part_with_line(web: &Web, view: &RunView, kind: PhaseKind, line: u64) -> Result<LogPart, Error> {
    let end = web.control_plane.log_end(view, kind).await?;
    let place = match place_of(web, view, kind, line, LOG_WINDOW_BYTES, end).await {
        // The part says so.
        Err(Error::Corrupt(_)) => LinePlace::AtEnd,
        place => place?,
    };
    let (before, known) = match place {
        LinePlace::Within { begins, before } => (Some(before), Some(KnownLine { number: line, begins })),
        LinePlace::AtEnd | LinePlace::NotKnownYet => (None, None),
    };
    let part = or_damaged(part_before(web, view, kind, before, end, known).await, kind, end)?;
    Ok(LogPart { misses_line: place == LinePlace::NotKnownYet, ..part })
}

/// Offset at which the last lines of a window begin. Only the window at a log's beginning begins with a whole line.
fn first_shown(bytes: &[u8], at_beginning: bool) -> usize {
    let ends = |byte: &u8| *byte == b'\n';
    let first_line = match at_beginning {
        true => 0,
        false => bytes.iter().position(ends).map_or(0, |end| end + 1),
    };
    // Neither the mark at a log's end nor the break before it is a line.
    let body = bytes.strip_suffix(b"\x03").unwrap_or(bytes);
    let body = body.strip_suffix(b"\n").unwrap_or(body);
    let mut ends_from_last = body.iter().enumerate().rev().filter(|(_, byte)| ends(byte));
    let counted = ends_from_last.nth(MAX_SHOWN_LINES - 1).map_or(0, |(end, _)| end + 1);
    first_line.max(counted).min(bytes.len())
}

#[derive(Deserialize)]
pub(crate) struct PhasePath {
    phase: String,
}

#[derive(Deserialize)]
pub(crate) struct LogQuery {
    before: Option<u64>,
}

#[derive(Template)]
#[template(path = "run_log.html")]
struct EarlierPart {
    part: LogPart,
    address: String,
    kind: PhaseKind,
}

/// `GET …/runs/{run}/log/{phase}/part?before=…`: what the link above a log leads to.
pub(crate) async fn earlier(
    State(web): State<Web>,
    visitor: Visitor,
    Path(path): Path<RunPath>,
    Path(PhasePath { phase }): Path<PhasePath>,
    Query(query): Query<LogQuery>,
) -> Result<Response, PageError> {
    let kind = phase.parse().map_err(|_| PageError::not_found("log"))?;
    let view = find(&web, &visitor, &path).await?;
    let part = part(&web, &view, kind, query.before).await?;
    Ok(page::render(StatusCode::OK, &EarlierPart { part, address: path.address(), kind }))
}

/// `GET …/runs/{run}/log/{phase}`: all of it, as it was written but for the marks at its ends.
pub(crate) async fn whole(
    State(web): State<Web>,
    visitor: Visitor,
    Path(path): Path<RunPath>,
    Path(PhasePath { phase }): Path<PhasePath>,
) -> Result<Response, PageError> {
    let kind: PhaseKind = phase.parse().map_err(|_| PageError::not_found("log"))?;
    let view = find(&web, &visitor, &path).await?;
    let name = format!("inline; filename=\"{}-{kind}.txt\"", view.run.id);
    let pieces = stream::unfold(Some(0), move |at| {
        let (web, view) = (web.clone(), view.clone());
        async move {
            let at = at?;
            match web.control_plane.log_part(&view, kind, at, LOG_CHUNK_BYTES).await {
                Ok(bytes) if bytes.is_empty() => None,
                Ok(bytes) => {
                    let next = at + bytes.len() as u64;
                    Some((Ok::<_, Infallible>(without_marks(bytes)), Some(next)))
                }
                Err(error) => {
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    tracing::error!(event = "log_stream_failed", %error, cause, "a log ended early");
                    let line = match error {
                        Error::Corrupt(_) => Bytes::from_static(DAMAGED.as_bytes()),
                        _ => {
                            Bytes::from_static(b"\nThe storage did not answer: the rest of this log is missing here.\n")
                        }
                    };
                    Some((Ok(line), None))
                }
            }
        }
    });
    let headers = [(CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()), (CONTENT_DISPOSITION, name)];
    // What packs it for a browser asks once more after the end.
    Ok((headers, Body::from_stream(pieces.fuse())).into_response())
}

/// Logs begin with STX and end with ETX, for clients that wait for the end.
fn without_marks(mut bytes: Vec<u8>) -> Bytes {
    bytes.retain(|byte| !matches!(byte, 0x02 | 0x03));
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_begins_with_a_whole_line_and_has_no_more_than_fit() {
        assert_eq!(first_shown(b"half\nwhole\n", false), 5);
        assert_eq!(first_shown(b"one\ntwo\n", true), 0);
        assert_eq!(first_shown(b"no end", false), 0);
        assert_eq!(first_shown(b"", true), 0);
        let many = "x\n".repeat(MAX_SHOWN_LINES + 10);
        assert_eq!(first_shown(many.as_bytes(), true), 20);
        assert_eq!(first_shown(many.trim_end().as_bytes(), true), 20);
        assert_eq!(first_shown((many + "\x03").as_bytes(), true), 20);
    }
}
