//! What taco stores and says to its agents, pinned: whatever this version writes has a frozen sample in
//! `migrations-in-bucket/`, and every sample ever frozen is read by every later version.

mod bucket;
mod samples;
