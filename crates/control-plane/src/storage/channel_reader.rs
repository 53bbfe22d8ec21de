//! A stream, for code that reads and waits.

use std::io::{self, Read};

use bytes::{Buf, Bytes};
use tokio::sync::mpsc;

/// Capacity, in chunks, of the channel between a body and its concurrent reader.
const AHEAD: usize = 4;

/// The near end of a stream.
pub(crate) type Chunks = mpsc::Sender<io::Result<Bytes>>;

/// The far end of a stream.
pub(crate) struct ChannelReader {
    chunks: mpsc::Receiver<io::Result<Bytes>>,
    current: Bytes,
}

pub(crate) fn channel() -> (Chunks, ChannelReader) {
    let (sender, chunks) = mpsc::channel(AHEAD);
    (sender, ChannelReader { chunks, current: Bytes::new() })
}

impl Read for ChannelReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.chunks.blocking_recv() {
                None => return Ok(0),
                Some(piece) => self.current = piece?,
            }
        }
        let count = self.current.len().min(buffer.len());
        self.current.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}
