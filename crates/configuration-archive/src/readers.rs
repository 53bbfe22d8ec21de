//! Readers that an archive flows through before its entries are read: each stops at its size limit.

use std::cell::{Cell, RefCell};
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use tar::{EntryType, Header};

use crate::error::ArchiveError;
use crate::limits::Limits;

const TAR_BLOCK_BYTES: usize = 512;

/// Maximum size of a header that describes the next one. Readers of tar keep it in memory whole.
const MAX_EXTENSION_HEADER_BYTES: u64 = 1024 * 1024;

/// Reason why a reader stopped. The library that reads through it knows only that it did.
pub(crate) type Stop = Rc<RefCell<Option<ArchiveError>>>;

fn stopped(stop: &Stop, error: ArchiveError) -> io::Error {
    let seen = io::Error::other(error.to_string());
    stop.borrow_mut().get_or_insert(error);
    seen
}

/// Counts the packed bytes that were needed so far, not those that only wait in a buffer.
pub(crate) struct Packed<R> {
    pub(crate) inner: R,
    pub(crate) used: Rc<Cell<u64>>,
}

impl<R: BufRead> Read for Packed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.used.set(self.used.get() + count as u64);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Packed<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.used.set(self.used.get() + count as u64);
        self.inner.consume(count);
    }
}

/// Counts what comes out, and stops at the limits.
pub(crate) struct Unpacked<R> {
    pub(crate) inner: R,
    pub(crate) packed: Rc<Cell<u64>>,
    pub(crate) unpacked: u64,
    pub(crate) limits: Limits,
    pub(crate) stop: Stop,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer);
        let count = read.map_err(|error| stopped(&self.stop, ArchiveError::Unreadable(error.to_string())))?;
        self.unpacked += count as u64;
        let (packed, limits) = (self.packed.get(), self.limits);
        let error = if packed > limits.packed {
            ArchiveError::PackedTooLarge(limits.packed)
        } else if self.unpacked > limits.unpacked {
            ArchiveError::Expands(format!("{} bytes", limits.unpacked))
        } else if self.unpacked > limits.ratio_counts_after && self.unpacked / limits.ratio > packed {
            ArchiveError::Expands(format!("{} times its packed size", limits.ratio))
        } else {
            return Ok(count);
        };
        Err(stopped(&self.stop, error))
    }
}

/// Looks at each header before the library does, and stops at those that it would keep in memory, however large.
pub(crate) struct Frames<R> {
    inner: R,
    stop: Stop,
    header: [u8; TAR_BLOCK_BYTES],
    /// Number of header bytes read so far.
    filled: usize,
    /// The bytes before the next header.
    left: u64,
    over: bool,
}

impl<R: Read> Frames<R> {
    pub(crate) fn new(inner: R, stop: Stop) -> Self {
        Self { inner, stop, header: [0; TAR_BLOCK_BYTES], filled: 0, left: 0, over: false }
    }

    fn follow(&mut self, mut bytes: &[u8]) -> Result<(), ArchiveError> {
        while !bytes.is_empty() && !self.over {
            if self.left > 0 {
                let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
                self.left -= count as u64;
                bytes = &bytes[count..];
                continue;
            }
            let count = (TAR_BLOCK_BYTES - self.filled).min(bytes.len());
            self.header[self.filled..self.filled + count].copy_from_slice(&bytes[..count]);
            self.filled += count;
            bytes = &bytes[count..];
            if self.filled == TAR_BLOCK_BYTES {
                self.filled = 0;
                self.look()?;
            }
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), ArchiveError> {
        if self.header.iter().all(|byte| *byte == 0) {
            self.over = true;
            return Ok(());
        }
        let header = Header::from_byte_slice(&self.header);
        let unreadable = |error: io::Error| ArchiveError::Unreadable(error.to_string());
        let size = header.entry_size().map_err(unreadable)?;
        match header.entry_type() {
            EntryType::GNULongName | EntryType::GNULongLink | EntryType::XHeader
                if size > MAX_EXTENSION_HEADER_BYTES =>
            {
                return Err(ArchiveError::entry(&header.path_bytes(), "the name is too long"));
            }
            EntryType::GNUSparse => return Err(ArchiveError::entry(&header.path_bytes(), crate::walk::KINDS)),
            _ => {}
        }
        let whole = size.checked_next_multiple_of(TAR_BLOCK_BYTES as u64);
        self.left = whole.ok_or_else(|| ArchiveError::entry(&header.path_bytes(), "it is too large"))?;
        Ok(())
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.follow(&buffer[..count]).map_err(|error| stopped(&self.stop, error))?;
        Ok(count)
    }
}
