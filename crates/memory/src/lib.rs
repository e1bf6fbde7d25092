//! Timing of the memory hierarchy: caches, translation, prefetch, buses and local memory.
//!
//! No data, no I/O: only who waits for what, and until when. Times are absolute cycles. A request may be made for an
//! earlier time than the one before it, since all shared resources are calendars.
//!
//! * [`tags`]: tag arrays, with a replacement policy. [`pipes`]: the load/store pipes. [`tlb`], [`tables`]: translation. [`frames`]: physical
//!   memory and page placement. [`pointer`]: tagged addresses. [`prefetch`]: the hardware prefetcher. [`sectors`]: the
//!   sector cache.
//! * [`cmg`]: L2 and memory of one CMG. `tiers`: memory nodes without cores. [`ring`]: between CMGs. [`chip`]: what cores share, and coherence.
//!   [`snoop_queue`]: snoops of cores that are not running. [`partition`]: a chip on several host threads.
//! * [`hierarchy`]: the memory hierarchy as one core sees it.
//! * [`refills`]: what each instruction brings into the caches.
//! * `walks`: which pages cores translate, for a system that moves pages by heat.
//! * `reserve`: accesses that only keep caches, translations and streams warm.

pub mod bus;
mod channel;
pub mod chip;
pub mod cmg;
pub mod frames;
pub mod hierarchy;
pub mod partition;
pub mod pipes;
pub mod pointer;
pub mod prefetch;
pub mod refills;
mod replacement;
mod reserve;
pub mod ring;
pub mod sectors;
mod side_cache;
mod snoop_filter;
pub mod snoop_queue;
pub mod tables;
pub mod tags;
mod tiers;
pub mod tlb;
mod walks;

pub use chip::{Chip, CoreId};
pub use frames::{MOST_NODES, PageRange, Placement, SharedPages, Turns};
pub use hierarchy::{Cause, CoreMemory, Hierarchy, Level, Located, Misses, NEVER, Response, Wants};
pub use partition::{Partition, PartitionResult, Partitioned};
pub use pipes::LoadStorePipes;
pub use pointer::Pointer;
pub use prefetch::control::Registers as PrefetchRegisters;
pub use refills::{Refill, RefillKind, Refills};
pub use tlb::Bounds;
pub use walks::Walk;
