//! The files of a process about its memory.

use std::fmt::Write as _;

use fxscope_guestmem::{PagesByUsers, Prot, Region, Segment};

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
    let (first, last) = (of.regions().next(), of.regions().last());
    let range = first.zip(last).map_or((0, 0), |(first, last)| (first.start, last.end));
    let line = format!("{:08x}-{:08x} ---p 00000000 00:00 0", range.0, range.1);
    let mut text = format!("{line:<73}[rollup]\n");
    let sizes = of.regions().map(|region| Sizes::of(k, &of, region));
    sizes.fold(Sizes::default(), Sizes::plus).write(&mut text);
    text.into_bytes()
}

/// The bytes of pages in memory that `smaps` counts apart.
#[derive(Default)]
struct Sizes {
    resident: u64,
    anonymous: u64,
    /// In transparent huge pages of the largest size.
    huge: u64,
    pages: PagesByUsers,
}

impl Sizes {
    /// Returns those of a mapping. Parts of a large page that were not accessed are pages of the process alone.
    fn of(k: &Kernel<'_>, of: &Subject<'_>, region: &Region) -> Sizes {
        let resident = of.space().pages.resident_in(region.start..region.end).1;
        let used = k.mem.pages_by_users(of.space().id, region);
        let untouched = resident.saturating_sub(used.total());
        let mut left = resident;
        let [shared_clean, shared_dirty, private_clean] = [used.shared_clean, used.shared_dirty, used.private_clean]
            .map(|bytes| {
                let part = bytes.min(left);
                left -= part;
                part
            });
        let proportional = (used.proportional + untouched).min(resident);
        let pages = PagesByUsers { shared_clean, shared_dirty, private_clean, private_dirty: left, proportional };
        let anonymous = if region.backing.is_some() { 0 } else { resident };
        let huge = of.space().pages.huge_bytes_in(region.start..region.end);
        Sizes { resident, anonymous, huge, pages }
    }

    fn plus(self, other: Sizes) -> Sizes {
        let (a, b) = (self.pages, other.pages);
        Sizes {
            resident: self.resident + other.resident,
            anonymous: self.anonymous + other.anonymous,
            huge: self.huge + other.huge,
            pages: PagesByUsers {
                shared_clean: a.shared_clean + b.shared_clean,
                shared_dirty: a.shared_dirty + b.shared_dirty,
                private_clean: a.private_clean + b.private_clean,
                private_dirty: a.private_dirty + b.private_dirty,
                proportional: a.proportional + b.proportional,
            },
        }
    }

    /// Writes a line for each.
    fn write(&self, text: &mut String) {
        let Sizes { resident, anonymous, huge, pages } = self;
        let lines = [
            ("Rss", *resident),
            ("Pss", pages.proportional),
            ("Shared_Clean", pages.shared_clean),
            ("Shared_Dirty", pages.shared_dirty),
            ("Private_Clean", pages.private_clean),
            ("Private_Dirty", pages.private_dirty),
            ("Referenced", *resident),
            ("Anonymous", *anonymous),
            ("LazyFree", 0),
            ("AnonHugePages", *huge),
            ("ShmemPmdMapped", 0),
            ("FilePmdMapped", 0),
            ("Shared_Hugetlb", 0),
            ("Private_Hugetlb", 0),
            ("Swap", 0),
            ("SwapPss", 0),
            ("Locked", 0),
        ];
        lines.into_iter().for_each(|(name, bytes)| write_size(text, name, bytes));
    }
}

fn write_size(text: &mut String, name: &str, bytes: u64) {
    let _ = writeln!(text, "{:<15} {:>8} kB", format!("{name}:"), bytes / KIB);
}

/// Writes what `smaps` has below the line of a mapping.
fn write_sizes(text: &mut String, k: &Kernel<'_>, of: &Subject<'_>, region: &Region) {
    let page = of.space().pages.page_bytes_at(region, region.start);
    write_size(text, "Size", region.end - region.start);
    write_size(text, "KernelPageSize", page);
    write_size(text, "MMUPageSize", page);
    Sizes::of(k, of, region).write(text);
    let eligible = u8::from(of.space().pages.is_eligible(of.regions(), region));
    let _ = write!(text, "THPeligible:           {eligible}\nVmFlags:");
    let Prot { read, write, exec } = region.prot;
    let shared = region.shared;
    let flags = [(read, "rd"), (write, "wr"), (exec, "ex"), (shared, "sh"), (true, "mr mw me"), (shared, "ms")];
    for (_, name) in flags.into_iter().filter(|(has, _)| *has) {
        let _ = write!(text, " {name}");
    }
    if let Some(advice) = of.space().pages.advice_flag(region.start) {
        let _ = write!(text, " {advice}");
    }
    text.push_str(" \n");
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
            let mut text = String::new();
            write_sizes(&mut text, k, &of, region);
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
