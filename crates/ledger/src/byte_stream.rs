//! Cutting streams of bytes, which come in pieces of any size.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt, future, stream};

use crate::bucket::{BucketError, ByteStream};

/// A stream of bytes that are in memory anyway.
pub(crate) fn of(bytes: Bytes) -> ByteStream {
    stream::once(future::ready(Ok(bytes))).boxed()
}

/// The first `length` bytes, or all of them if there are fewer, and the rest.
pub(crate) async fn split(mut whole: ByteStream, length: usize) -> Result<(Bytes, ByteStream), BucketError> {
    let mut beginning = BytesMut::new();
    while beginning.len() < length {
        match whole.try_next().await? {
            Some(bytes) => append(&mut beginning, bytes),
            None => break,
        }
    }
    let rest = beginning.split_off(beginning.len().min(length));
    let rest = if rest.is_empty() { whole } else { of(rest.freeze()).chain(whole).boxed() };
    Ok((beginning.freeze(), rest))
}

/// Adds bytes to others. Where there are none yet and nobody else holds these, they are taken as they are.
pub(crate) fn append(waiting: &mut BytesMut, bytes: Bytes) {
    if waiting.is_empty() {
        *waiting = bytes.into();
    } else {
        waiting.extend_from_slice(&bytes);
    }
}

/// The bytes of `range` alone. Nothing behind them is asked for.
pub(crate) fn part(whole: ByteStream, range: Range<u64>) -> ByteStream {
    stream::try_unfold((whole, 0, range), |(mut whole, mut at, range)| async move {
        while at < range.end {
            let Some(bytes) = whole.try_next().await? else { break };
            let here = at..at + bytes.len() as u64;
            at = here.end;
            let wanted = range.start.max(here.start)..range.end.min(here.end);
            if !wanted.is_empty() {
                let inside = (wanted.start - here.start) as usize..(wanted.end - here.start) as usize;
                return Ok(Some((bytes.slice(inside), (whole, at, range))));
            }
        }
        Ok(None)
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters() -> ByteStream {
        stream::iter(["ab", "", "c", "defg"].map(|text| Ok(Bytes::from(text)))).boxed()
    }

    async fn text(stream: ByteStream) -> String {
        String::from_utf8(stream.try_collect::<Vec<Bytes>>().await.expect("works").concat()).expect("text")
    }

    #[tokio::test]
    async fn a_stream_can_be_cut_anywhere() {
        for length in 0..10 {
            let (beginning, rest) = split(letters(), length).await.expect("works");
            assert_eq!(beginning, "abcdefg"[..length.min(7)]);
            assert_eq!(text(rest).await, "abcdefg"[length.min(7)..]);
        }
        for start in 0..9 {
            for end in start..9 {
                let expected = &"abcdefg"[start.min(7)..end.min(7)];
                assert_eq!(text(part(letters(), start as u64..end as u64)).await, expected, "{start}..{end}");
            }
        }
    }
}
