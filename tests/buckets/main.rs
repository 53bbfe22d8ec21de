//! Requirements of taco for a bucket, tested with every kind of bucket there is.
//!
//! Each behaviour is one function in [`behaviours`] or [`ledger`]; the table below makes a test of it for each bucket,
//! called for instance `azurite::deleting_twice_is_fine`. External servers are started once and shared; every test has
//! its own prefix in them.

mod behaviours;
mod dead_bucket;
mod full_disk;
mod full_disk_of_server;
mod ledger;
mod places;
mod refused;
mod servers;
mod taco;
mod unwritable;

/// One test for each behaviour, in the bucket that `$place` opens.
macro_rules! on {
    ($place:ident: $($module:ident::$behaviour:ident,)*) => {
        mod $place {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $behaviour() {
                    crate::$module::$behaviour(&crate::places::$place().await).await;
                }
            )*
        }
    };
    ($($place:ident),* => $behaviours:tt) => { $(on!(@ $place $behaviours);)* };
    (@ $place:ident { $($behaviours:tt)* }) => { on!($place: $($behaviours)*); };
}

on! { memory, directory, gofakes3, versitygw, azurite, fake_gcs => {
    behaviours::the_second_creator_is_refused,
    behaviours::of_racing_creators_one_wins,
    behaviours::an_absent_object_is_none,
    behaviours::an_object_can_be_overwritten,
    behaviours::an_object_tells_when_it_was_written,
    behaviours::an_empty_bucket_lists_nothing,
    behaviours::a_listing_is_sorted_and_begins_after_a_key,
    behaviours::a_listing_stays_in_its_folder,
    behaviours::a_long_listing_is_complete,
    behaviours::folders_are_named_once_and_sorted,
    behaviours::deleting_twice_is_fine,
    behaviours::uploads_of_any_size_come_back,
    behaviours::a_range_is_read_without_the_rest,
    behaviours::an_upload_that_breaks_leaves_nothing,
    behaviours::two_prefixes_are_two_buckets,
    behaviours::the_doctor_is_content,
    ledger::two_servers_lose_nothing,
}}
