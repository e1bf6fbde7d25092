//! Which addresses the pages of a range translate.

use super::PageSpan;

/// Bounds the pages of spans, which are in address order: they translate nothing of neighbours that are other segments or have pages of
/// another size.
///
/// Page tables have one page for an address, and large pages hold one segment: where the large-page library is used, the linker puts
/// segments on multiples of a large page. Programs that were linked otherwise run here as if they were, at the addresses that they have.
pub(super) fn bounded(mut spans: Vec<PageSpan>) -> Vec<PageSpan> {
    let kind = |span: &PageSpan| (span.segment, span.shift);
    let mut groups: Vec<&mut [PageSpan]> = spans.chunk_by_mut(|a, b| kind(a) == kind(b)).collect();
    let starts: Vec<u64> = groups.iter().filter_map(|group| Some(group.first()?.range.start)).collect();
    let mut start = 0;
    for (index, group) in groups.iter_mut().enumerate() {
        let end = starts.get(index + 1).copied().unwrap_or(u64::MAX);
        group.iter_mut().for_each(|span| span.within = start..end);
        start = group.last().map_or(start, |span| span.range.end);
    }
    spans
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use fxscope_guestmem::Segment;

    use super::super::Placement;
    use super::*;

    fn within(spans: &[(Range<u64>, Segment, u32)]) -> Vec<Range<u64>> {
        let span = |(range, segment, shift): &(Range<u64>, Segment, u32)| {
            let (range, within, placement) = (range.clone(), 0..u64::MAX, Placement::FirstTouch);
            PageSpan { range, within, segment: *segment, shift: *shift, placement, moved: 0, shared: None }
        };
        bounded(spans.iter().map(span).collect()).into_iter().map(|span| span.within).collect()
    }

    #[test]
    fn a_page_of_data_ends_where_bss_begins_whatever_pages_that_has() {
        for shift in [16, 21] {
            let spans = [
                (0x40_0000..0x41_0000, Segment::Text, 16),
                (0x41_0000..0x42_0000, Segment::Data, 21),
                (0x42_0000..0x90_0000, Segment::Bss, shift),
            ];
            let [text, data, bss] = [0..0x41_0000, 0x41_0000..0x42_0000, 0x42_0000..u64::MAX];
            assert_eq!(within(&spans), [text, data, bss]);
        }
    }

    #[test]
    fn mappings_share_a_page_where_nothing_else_lies_between_them() {
        let spans = [
            (0x1_0000..0x2_0000, Segment::Mmap, 21),
            (0x3_0000..0x4_0000, Segment::Mmap, 21),
            (0x5_0000..0x6_0000, Segment::File, 16),
            (0x7_0000..0x8_0000, Segment::Mmap, 21),
            (0x8_0000..0x9_0000, Segment::Mmap, 16),
        ];
        let (file, behind, small) = (0x4_0000..0x7_0000, 0x6_0000..0x8_0000, 0x8_0000..u64::MAX);
        assert_eq!(within(&spans), [0..0x5_0000, 0..0x5_0000, file, behind, small]);
    }
}
