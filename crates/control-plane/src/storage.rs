//! Large objects in the bucket: uploads, downloads, and checks of what is stored.

pub(crate) mod blob_error;
pub(crate) mod channel_reader;
pub(crate) mod reader_slots;
pub(crate) mod stored_objects;
pub(crate) mod upload_slots;
