//! Timing of the memory hierarchy: caches, translation, prefetch, buses and local memory.
//!
//! No data, no I/O: only who waits for what, and until when. Times are absolute cycles; a request may
//! come earlier than one made before it, since all shared resources are calendars.
//!
//! * [`tags`]: tag arrays. [`pipes`]: the load/store pipes. [`tlb`]: translation. [`pointer`]: addresses with their
//!   tags. [`prefetch`]: the stream prefetcher. [`sectors`]: the sector cache. [`shared`]: what the cores of a CMG
//!   share, L2 and local memory. [`hierarchy`]: one core's way through all of them.

pub mod hierarchy;
pub mod pipes;
pub mod pointer;
pub mod prefetch;
pub mod sectors;
pub mod shared;
pub mod tags;
pub mod tlb;

pub use hierarchy::{Hierarchy, Level, Misses, NEVER, Response};
pub use pipes::LoadStorePipes;
pub use pointer::Pointer;
pub use tlb::PageRange;
