//! Limits on sizes.

/// The sizes are of the bytes that come out: a mebibyte of gzip can hold a gibibyte of zeros.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub packed: u64,
    pub unpacked: u64,
    pub ratio: u64,
    /// Small archives may be packed as tightly as they like.
    pub ratio_counts_after: u64,
    pub entries: usize,
    /// The bytes of one name.
    pub name: usize,
    /// The directories that one name leads through.
    pub depth: usize,
    /// The bytes of all names together: they are kept until the end.
    pub names: usize,
}

pub const LIMITS: Limits = Limits {
    packed: 100 * MEBIBYTE,
    unpacked: 1024 * MEBIBYTE,
    ratio: 200,
    ratio_counts_after: 10 * MEBIBYTE,
    entries: 50_000,
    name: 4096,
    depth: 128,
    names: 16 * 1024 * 1024,
};

const MEBIBYTE: u64 = 1024 * 1024;
