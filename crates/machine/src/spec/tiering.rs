//! Memory tiering: the table of `machine.toml`.

use super::{GIB, MIB};
use crate::schema::Rule::{Range, Real};
use crate::schema::table;

/// Times of the system, ns.
const TIME: crate::schema::Rule = Range(1, 3_600_000_000_000);

table! {
    /// Promotion and demotion of pages between nodes with cores and memory tiers, as Linux does it by page heat.
    Tiering {
        /// The system promotes and demotes pages (`kernel.numa_balancing = 2`, and `demotion_enabled`).
        enabled: bool,
        /// Time from a program's start to its first scan (`numa_balancing/scan_delay_ms`).
        scan_delay_ns: u64 => TIME; unit "ns",
        /// Time between two scans of a process (`numa_balancing/scan_period_min_ms`).
        scan_period_ns: u64 => TIME; unit "ns",
        /// Most memory whose pages a scan makes inaccessible (`numa_balancing/scan_size_mb`).
        scan_bytes: u64 => Range(4096, 1024 * GIB); unit "bytes",
        /// A page that is accessed sooner than this after the scan is hot (`numa_balancing/hot_threshold_ms`).
        hot_threshold_ns: u64 => TIME; unit "ns",
        /// Time between two adjustments of the threshold (`numa_balancing/scan_period_max_ms`).
        adjust_period_ns: u64 => TIME; unit "ns",
        /// Most bytes of hot pages promoted per second (`kernel.numa_balancing_promote_rate_limit_MBps`).
        promote_bytes_per_second: u64 => Range(MIB, 1_000_000 * MIB); unit "bytes/s",
        /// Time for which this limit counts.
        promote_window_ns: u64 => TIME; unit "ns",
        /// Free fast memory above the watermarks from which every page that is accessed is promoted, hot or not.
        ample_bytes: u64 => Range(0, 1024 * GIB); unit "bytes",
        /// The same as a share of the fast memory. The larger one holds.
        ample_share: f64 => Real(0.0, 1.0); unit "part of the memory",
        /// Distance between the watermarks of free fast memory, as a share of it (`vm.watermark_scale_factor`).
        watermark_share: f64 => Real(0.0, 0.3); unit "part of the memory",
    }
}
