//! The libFuzzer entry of [`lifeboat_fuzz::quantity`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| lifeboat_fuzz::quantity(data));

/// Without libFuzzer there is nothing to drive the target here; `soak` can.
#[cfg(not(fuzzing))]
fn main() {
    eprintln!("build this with cargo fuzz, or run: soak quantity");
}
