//! How a Linux host is configured, as its kernel reports it in `/proc` and `/sys`: [`memory`] has page sizes, NUMA nodes and the
//! memory of processes, [`cpus`] the cores and the kernel settings that matter for measurements.
//!
//! Parsers take the texts of these files, so that a host can also be examined from files copied elsewhere.

pub mod cpus;
pub mod memory;
