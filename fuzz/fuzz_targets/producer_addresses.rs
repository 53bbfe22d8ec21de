#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| taco_fuzz_targets::domain::producer_addresses(data));
