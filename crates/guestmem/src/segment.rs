//! What parts of an address space are used for.

use serde::{Deserialize, Serialize};

/// What a region is used for; a machine may give each its own page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Segment {
    /// Program text and read-only data.
    Text,
    /// Initialised data.
    Data,
    /// Zero-initialised data.
    Bss,
    /// The `brk` heap.
    Heap,
    /// The main thread's stack.
    Stack,
    /// Another thread's stack.
    ThreadStack,
    /// Private anonymous `mmap`.
    Mmap,
    /// Shared anonymous `mmap`.
    Shared,
    /// File-backed `mmap`, and other mappings that the kernel provides.
    File,
}

impl Segment {
    /// Returns whether it starts as zeros and does not come from a file.
    #[must_use]
    pub fn is_anonymous(self) -> bool {
        !matches!(self, Segment::Text | Segment::Data | Segment::File)
    }

    /// Returns its name in settings and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Segment::Text => "text",
            Segment::Data => "data",
            Segment::Bss => "bss",
            Segment::Heap => "heap",
            Segment::Stack => "stack",
            Segment::ThreadStack => "thread_stack",
            Segment::Mmap => "mmap",
            Segment::Shared => "shared",
            Segment::File => "file",
        }
    }

    /// All segments.
    pub const ALL: [Segment; 9] = [
        Segment::Text,
        Segment::Data,
        Segment::Bss,
        Segment::Heap,
        Segment::Stack,
        Segment::ThreadStack,
        Segment::Mmap,
        Segment::Shared,
        Segment::File,
    ];
}
