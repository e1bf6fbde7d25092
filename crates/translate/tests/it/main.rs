//! Tests of the translator: it does what the interpreter does, and what QEMU does.

mod counted;
mod qemu;
mod random;
mod traced;

/// What the tests of `fxscope-aarch64` compare with QEMU: the cases, and how QEMU runs them.
#[allow(dead_code)]
#[path = "../../../aarch64/tests/it/differential"]
mod differential {
    pub mod blocks;
    pub mod consistency;
    pub mod exclude;
    pub mod generate;
    pub mod machine;
    pub mod qemu;
    pub mod report;
    pub mod rng;
}
