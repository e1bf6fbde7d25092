//! The files of a process about its memory.

use std::fmt::Write as _;

use fxscope_guestmem::{Prot, Region, Segment};

use super::KIB;
use super::process::Subject;
use crate::kernel::Kernel;
use crate::thread::Thread;

/// Returns the bytes of the mappings of the segments that are wanted.
pub(super) fn bytes_of(of: &Subject<'_>, wanted: impl Fn(Segment) -> bool) -> u64 {
    of.regions().filter(|r| wanted(r.segment)).map(|r| r.end - r.start).sum()
}

/// Returns `/proc/PID/statm`, in pages.
pub(super) fn statm(k: &Kernel<'_>, t: &Thread) -> Vec<u8> {
    let of = Subject::new(k, t);
    let pages = |bytes: u64| bytes / k.system.platform.page_bytes;
    let text = pages(bytes_of(&of, |s| s == Segment::Text));
    let data = pages(bytes_of(&of, |s| !matches!(s, Segment::Text | Segment::File)));
    let (size, resident) = (pages(bytes_of(&of, |_| true)), pages(of.space().pages.resident_bytes()));
    format!("{size} {resident} 0 {text} 0 {data} 0\n").into_bytes()
}

/// Returns `/proc/PID/smaps_rollup`: the sums of `smaps`.
pub(super) fn smaps_rollup(k: &Kernel<'_>, t: &Thread) -> Vec<u8> {
    let of = Subject::new(k, t);
    let resident = of.space().pages.resident_bytes() / KIB;
    let (first, last) = (of.regions().next(), of.regions().last());
    let range = first.zip(last).map_or((0, 0), |(first, last)| (first.start, last.end));
    let line = format!("{:08x}-{:08x} ---p 00000000 00:00 0", range.0, range.1);
    let mut text = format!("{line:<73}[rollup]\n");
    let lines = [
        ("Rss", resident),
        ("Pss", resident),
        ("Shared_Clean", 0),
        ("Shared_Dirty", 0),
        ("Private_Clean", 0),
        ("Private_Dirty", resident),
        ("Referenced", resident),
        ("Anonymous", resident),
        ("AnonHugePages", 0),
        ("Swap", 0),
        ("SwapPss", 0),
        ("Locked", 0),
    ];
    for (name, kib) in lines {
        let _ = writeln!(text, "{:<15} {kib:>8} kB", format!("{name}:"));
    }
    text.into_bytes()
}

/// Returns one line of `maps` per mapping; with `sizes`, also the sizes that `smaps` has below each.
pub(super) fn maps(k: &Kernel<'_>, t: &Thread, sizes: bool) -> Vec<u8> {
    let of = Subject::new(k, t);
    let mut out = Vec::new();
    for region in of.regions() {
        let file = of.space().mapped.at(region.start);
        let (offset, inode) = file.as_ref().map_or((0, 0), |f| (f.offset, f.inode));
        let line = format!(
            "{:08x}-{:08x} {}{} {offset:08x} {} {inode}",
            region.start,
            region.end,
            rights(region.prot),
            if region.shared { 's' } else { 'p' },
            if file.is_some() { "fe:01" } else { "00:00" },
        );
        let name = match file {
            Some(file) => file.path.clone(),
            None => special_name(region).to_vec(),
        };
        out.extend(if name.is_empty() { format!("{line} ").into_bytes() } else { format!("{line:<73}").into_bytes() });
        out.extend(name);
        out.push(b'\n');
        if sizes {
            let (kib, page) =
                ((region.end - region.start) / KIB, of.space().pages.page_bytes_at(region, region.start) / KIB);
            let resident = of.space().pages.resident_in(region.start..region.end).1 / KIB;
            let text = format!(
                "Size:           {kib:>8} kB\nKernelPageSize: {page:>8} kB\nMMUPageSize:    {page:>8} kB\n\
                 Rss:            {resident:>8} kB\nPss:            {resident:>8} kB\n"
            );
            out.extend(text.into_bytes());
        }
    }
    out
}

fn rights(prot: Prot) -> String {
    [(prot.read, 'r'), (prot.write, 'w'), (prot.exec, 'x')].map(|(has, c)| if has { c } else { '-' }).iter().collect()
}

fn special_name(region: &Region) -> &'static [u8] {
    match region.segment {
        Segment::Heap => b"[heap]",
        Segment::Stack => b"[stack]",
        _ => b"",
    }
}

/// Returns the placement of memory: one line per mapping, as described in numa(7). The policy is that of the range, or of the
/// calling thread.
pub(super) fn numa_maps(k: &Kernel<'_>, t: &Thread) -> Vec<u8> {
    let of = Subject::new(k, t);
    of.regions().flat_map(|region| numa_line(k, &of, t, region)).collect()
}

fn numa_line(k: &Kernel<'_>, of: &Subject<'_>, t: &Thread, region: &Region) -> Vec<u8> {
    let policy = of.space().pages.policy_at(region.start).unwrap_or(t.policy);
    let mut line = format!("{:08x} {policy}", region.start).into_bytes();
    let file = of.space().mapped.at(region.start).map(|file| file.path);
    match (&file, region.segment) {
        (Some(path), _) => line.extend([b" file=", &path[..]].concat()),
        (None, Segment::Heap) => line.extend(b" heap"),
        (None, Segment::Stack) => line.extend(b" stack"),
        _ => {}
    }
    let page = of.space().pages.page_bytes_at(region, region.start);
    if page > k.system.platform.page_bytes {
        line.extend(b" huge");
    }
    let (nodes, _) = of.space().pages.resident_in(region.start..region.end);
    let pages: u64 = nodes.values().sum();
    if pages > 0 {
        let kind = if file.is_some() { "mapped" } else { "anon" };
        let nodes: String = nodes.iter().map(|(node, pages)| format!(" N{node}={pages}")).collect();
        line.extend(format!(" {kind}={pages}{nodes} kernelpagesize_kB={}", page / KIB).into_bytes());
    }
    line.push(b'\n');
    line
}
