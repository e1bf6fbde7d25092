//! The name of the operating system.

/// What `uname` says of a kernel as machines of this kind run it: system, node, release, version, machine, domain.
pub(crate) const FIELDS: [&str; 6] = ["Linux", "fxscope", "5.14.0-fxscope.aarch64+64k", "#1 SMP", "aarch64", "(none)"];
