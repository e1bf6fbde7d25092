//! What parts of an address space are for.

use serde::{Deserialize, Serialize};

/// What a region is for; a machine may give each its own page size.
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
    /// File-backed `mmap`, and whatever else the kernel provides.
    File,
}

impl Segment {
    /// Whether it starts as zeros and is from no file.
    #[must_use]
    pub fn is_anonymous(self) -> bool {
        !matches!(self, Segment::Text | Segment::Data | Segment::File)
    }

    /// Its name in settings and reports.
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

    /// All of them.
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
