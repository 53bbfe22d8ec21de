#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| taco_fuzz_targets::domain::json_cuts(data));
