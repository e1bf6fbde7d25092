//! The name of the operating system.

/// What `uname` reports for a kernel of machines of this kind: system, node, release, version, machine, domain.
pub(crate) const FIELDS: [&str; 6] = ["Linux", "fxscope", "5.14.0-fxscope.aarch64+64k", "#1 SMP", "aarch64", "(none)"];
