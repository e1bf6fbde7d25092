//! What the fuzz targets share: the guest address space of `crates/aarch64/tests/it/hostile`, started from what the fuzzer
//! chooses, and the programs of `crates/linux/tests/it/hostile`.
//!
//! ```text
//! cargo +nightly fuzz run calls
//! cargo +nightly fuzz run decode
//! cargo +nightly fuzz run exec
//! cargo +nightly fuzz run elf
//! cargo +nightly fuzz run import
//! cargo +nightly fuzz run machine
//! cargo +nightly fuzz run translate
//! ```
//!
//! cargo-fuzz builds with AddressSanitizer. Run `calls` as another user than root, or in a container.

use libfuzzer_sys::arbitrary::{self, Arbitrary};

#[path = "../../crates/aarch64/tests/it/hostile/harness.rs"]
pub mod harness;

#[path = "../../crates/linux/tests/it/hostile/calls.rs"]
pub mod calls;

/// Registers as the fuzzer chooses them, few bytes for many registers.
#[derive(Arbitrary, Debug)]
pub struct Registers {
    vl: u8,
    general: [u64; 4],
    vector: [u64; 5],
    predicate: [u64; 3],
    ffr: u64,
    flags: u8,
    fpcr: u32,
}

impl From<Registers> for harness::Start {
    fn from(r: Registers) -> harness::Start {
        let Registers { vl, general, vector, predicate, ffr, flags, fpcr } = r;
        harness::Start { vl, general, vector, predicate, ffr, flags, fpcr }
    }
}
