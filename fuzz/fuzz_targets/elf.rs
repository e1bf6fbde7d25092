//! The loader takes any bytes: it refuses them, or maps what they say and names functions in it.

#![no_main]

use fxscope_guestmem::Memory;
use fxscope_linux::Image;
use libfuzzer_sys::fuzz_target;

/// Memory of the machine: small, so that each run is quick.
const BYTES: u64 = 1 << 20;

fuzz_target!(|file: &[u8]| {
    let Ok(image) = Image::parse(file) else { return };
    let mut mem = Memory::new(BYTES).expect("address space for a megabyte");
    if image.map(file, &mut mem, BYTES).is_ok() {
        assert!(mem.fetch(image.entry()).is_ok(), "the entry point can be fetched");
        let _ = image.symbols.at(image.entry());
    }
});
