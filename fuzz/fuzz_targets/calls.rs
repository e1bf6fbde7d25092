//! System calls with any arguments neither panic nor change the host, and come to an end. Not for root: what is found could
//! change the host's devices.

#![no_main]

use fxscope_fuzz::calls::{Call, Host};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|calls: Vec<(u16, [(u8, u64); 6])>| {
    let calls: Vec<Call> = calls.into_iter().map(|(which, arguments)| Call { which, arguments }).collect();
    Host::default().run(&calls);
});
