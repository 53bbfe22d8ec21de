//! Formats of stored records and of messages to agents, pinned: everything that this version writes has a frozen sample
//! in `migrations-in-bucket/`, and every sample ever frozen is read by every later version.

mod bucket;
mod declarations;
mod samples;
