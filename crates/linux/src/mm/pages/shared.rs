//! Memory that several mappings share, as pages.

use std::ops::Range;

use fxscope_guestmem::{Memory, Region, Segment, SharedBy};

use super::PageSpan;

/// Returns the object whose pages a region shares with other mappings. Private mappings do so where they are code, which
/// programs do not change.
pub(super) fn shared_by(mem: &Memory, region: &Region) -> Option<SharedBy> {
    if region.shared || region.segment == Segment::Text { mem.shared_by(region) } else { None }
}

/// Splits spans whose first or last large page would overlap `shared`, ranges of shared memory in address order: what they have of
/// such a page gets normal pages, with `1 << normal` bytes. Otherwise translations of the large page would hide which memory is
/// shared.
pub(super) fn apart(spans: Vec<PageSpan>, shared: &[Range<u64>], normal: u32) -> Vec<PageSpan> {
    if shared.is_empty() {
        return spans;
    }
    let meets = |page: Range<u64>| {
        let next = shared.partition_point(|range| range.end <= page.start);
        shared.get(next).is_some_and(|range| range.start < page.end)
    };
    let mut parts = Vec::with_capacity(spans.len());
    for span in spans {
        let (Range { start, end }, bytes) = (span.range.clone(), 1u64 << span.shift);
        if span.shared.is_some() || span.shift <= normal {
            parts.push(span);
            continue;
        }
        let (first, last) = (start / bytes * bytes, (end - 1) / bytes * bytes);
        let head = if meets(first..first + bytes) { (first + bytes).min(end) } else { start };
        let tail = if meets(last..last + bytes) { last.max(head) } else { end };
        let split = [(start..head, normal), (head..tail, span.shift), (tail..end, normal)];
        let split = split.into_iter().filter(|(range, _)| !range.is_empty());
        parts.extend(split.map(|(range, shift)| PageSpan { range, shift, ..span.clone() }));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::super::Placement;
    use super::*;

    const NORMAL: u32 = 16;
    const LARGE: u32 = 21;

    fn span(range: Range<u64>, shift: u32, serial: Option<u64>) -> PageSpan {
        let shared = serial.map(|serial| SharedBy { serial, origin: range.start });
        let within = 0..u64::MAX;
        PageSpan { range, within, segment: Segment::Mmap, shift, placement: Placement::FirstTouch, moved: 0, shared }
    }

    fn separated(spans: &[PageSpan]) -> Vec<PageSpan> {
        let shared: Vec<_> = spans.iter().filter(|span| span.shared.is_some()).map(|span| span.range.clone()).collect();
        apart(spans.to_vec(), &shared, NORMAL)
    }

    #[test]
    fn parts_of_large_pages_next_to_shared_memory_get_normal_ones() {
        let spans = vec![
            span(0x10_0000..0x50_0000, LARGE, None),
            span(0x50_0000..0x51_0000, NORMAL, Some(1)),
            span(0x51_0000..0x90_0000, LARGE, None),
            span(0xa0_0000..0xa1_0000, LARGE, None),
        ];
        let expected = [
            (0x10_0000..0x40_0000, LARGE),
            (0x40_0000..0x50_0000, NORMAL),
            (0x50_0000..0x51_0000, NORMAL),
            (0x51_0000..0x60_0000, NORMAL),
            (0x60_0000..0x90_0000, LARGE),
            (0xa0_0000..0xa1_0000, LARGE),
        ];
        let pages: Vec<_> = separated(&spans).into_iter().map(|span| (span.range, span.shift)).collect();
        assert_eq!(pages, expected);
    }

    #[test]
    fn without_shared_memory_next_to_it_nothing_changes() {
        let spans = vec![span(0x10_0000..0x50_0000, LARGE, None), span(0x60_0000..0x61_0000, NORMAL, Some(1))];
        assert_eq!(separated(&spans), spans);
        let spans = vec![span(0x10_0000..0x11_0000, LARGE, None), span(0x11_0000..0x12_0000, LARGE, None)];
        assert_eq!(separated(&spans), spans);
    }
}
