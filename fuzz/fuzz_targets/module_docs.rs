#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| taco_fuzz_targets::archive::module_docs(data));
