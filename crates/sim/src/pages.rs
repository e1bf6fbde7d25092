//! Page sizes of a program's segments, as the modelled system would choose them.

use fxscope_aarch64::{Memory, Segment};
use fxscope_machine::spec::Pages;
use fxscope_memory::{PageRange, Placement};

/// The page size of a segment, bytes.
#[must_use]
pub fn page_bytes(pages: &Pages, segment: Segment) -> u64 {
    match segment {
        Segment::Text | Segment::File => pages.text,
        Segment::Data => pages.data,
        Segment::Bss => pages.bss,
        Segment::Heap => pages.heap,
        Segment::Stack => pages.stack,
        Segment::ThreadStack => pages.thread_stack,
        Segment::Mmap => pages.mmap,
        Segment::Shared => pages.shared,
    }
}

/// Page sizes of the whole address space, lowest address first.
#[must_use]
pub fn page_ranges(memory: &Memory, pages: &Pages) -> Vec<PageRange> {
    memory
        .regions()
        .map(|r| PageRange {
            start: r.start,
            end: r.end,
            shift: page_bytes(pages, r.segment).trailing_zeros(),
            placement: Placement::FirstTouch,
        })
        .collect()
}
