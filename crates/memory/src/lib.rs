//! Timing of the memory hierarchy: caches, translation, prefetch, buses and local memory.
//!
//! No data, no I/O: only who waits for what, and until when. Times are absolute cycles; a request may
//! come earlier than one made before it, since all shared resources are calendars.
//!
//! * [`tags`]: tag arrays. [`pipes`]: the load/store pipes. [`tlb`], [`tables`]: translation. [`frames`]: physical memory and
//!   where pages are put. [`pointer`]: addresses with their tags. [`prefetch`]: the stream prefetcher. [`sectors`]: the
//!   sector cache.
//! * [`cmg`]: L2 and memory of one CMG. [`ring`]: between CMGs. [`chip`]: all that cores share, and who holds what.
//!   [`turns`]: the cores that wait. [`apart`]: CMGs that are simulated side by side.
//! * [`hierarchy`]: one core's way through all of them.

mod abroad;
pub mod apart;
pub mod bus;
mod channel;
pub mod chip;
pub mod cmg;
pub mod frames;
pub mod hierarchy;
pub mod pipes;
pub mod pointer;
pub mod prefetch;
pub mod ring;
pub mod sectors;
mod side_cache;
pub mod tables;
pub mod tags;
pub mod tlb;
pub mod turns;

pub use apart::{Apart, Part, Rest};
pub use chip::{Chip, Seat};
pub use frames::{PageRange, Placement};
pub use hierarchy::{Hierarchy, Level, Located, Misses, NEVER, Response, Wants};
pub use pipes::LoadStorePipes;
pub use pointer::Pointer;
pub use prefetch::control::Registers as PrefetchRegisters;
