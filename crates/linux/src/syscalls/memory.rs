//! System calls on the address space.

use std::os::fd::BorrowedFd;
use std::rc::Rc;

use fxscope_guestmem::{Backing, Memory, PAGE, Prot, Region, Segment, USER_END};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{Args, Result, perf};
use crate::abi::content::{Content, ProgramFile};
use crate::abi::elf;
use crate::abi::layout::MMAP_TOP;
use crate::kernel::Kernel;
use crate::mm::mapped::Mapped;
use crate::mm::pages::{MappingPages, Site};
use crate::mm::user;

const MAP_SHARED: u64 = 1;
const MAP_TYPE: u64 = 0xf;
pub(super) const MAP_FIXED: u64 = 0x10;
const MAP_ANONYMOUS: u64 = 0x20;
const MAP_STACK: u64 = 0x2_0000;
const MAP_HUGETLB: u64 = 0x4_0000;
const MAP_NORESERVE: u64 = 0x4000;
const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;

/// Converts `PROT_…` bits to rights. AArch64 Linux has no page that is writable or executable but not readable.
fn prot(bits: u64) -> Prot {
    Prot { read: bits & 7 != 0, write: bits & 2 != 0, exec: bits & 4 != 0 }
}

/// Returns `[start, start + len)` in whole pages, within user space.
fn range(start: u64, len: u64) -> std::result::Result<(u64, u64), Errno> {
    if !start.is_multiple_of(PAGE) {
        return Err(Errno::INVAL);
    }
    let end = start.checked_add(len).filter(|&end| end <= USER_END).ok_or(Errno::NOMEM)?;
    Ok((start, end.next_multiple_of(PAGE)))
}

/// Returns whether a region overlaps `[start, end)`.
pub(super) fn in_use(mem: &Memory, start: u64, end: u64) -> bool {
    mem.regions_within(start, end).next().is_some()
}

/// Returns whether every page of `[start, end)` is mapped.
fn mapped(mem: &Memory, start: u64, end: u64) -> bool {
    let mut at = start;
    while at < end {
        match mem.region_at(at) {
            Some(region) => at = region.end,
            None => return false,
        }
    }
    true
}

/// Returns the highest free range of `len` bytes below the stack's room that is aligned to `align`.
fn free_place(mem: &Memory, len: u64, align: u64) -> Option<u64> {
    let between = |low: u64, high: u64| {
        let start = high.checked_sub(len)? / align * align;
        (start >= low).then_some(start)
    };
    let mut low = PAGE;
    let mut best = None;
    for region in mem.regions() {
        best = between(low, region.start.min(MMAP_TOP)).or(best);
        low = low.max(region.end);
    }
    between(low, MMAP_TOP).or(best)
}

/// Records that code in `[start, end)` may change.
fn touch_code(k: &mut Kernel<'_>, start: u64, end: u64) {
    if k.mem.regions_within(start, end).any(|r| r.prot.exec) {
        k.process.changed_code.push(start..end);
    }
}

/// Properties of a new mapping in addition to its region.
#[derive(Default)]
struct Requested {
    /// Its requested pages, and whether they are allocated on demand.
    pages: Option<(MappingPages, bool)>,
    /// The number of the call that makes it.
    site: Option<u32>,
}

impl Requested {
    /// Returns what a thread requests with `flags`, or a run for its calls.
    fn of(k: &mut Kernel<'_>, segment: Segment, len: u64, flags: u64) -> std::result::Result<Requested, Errno> {
        let huge = huge_page(k, flags)?.map(|bytes| (MappingPages::Size(bytes), true));
        if segment != Segment::Mmap || !k.spaces[k.process.space].pages.wants_site(len) {
            return Ok(Requested { pages: huge, site: None });
        }
        let site = Site::calling(k);
        let (pages, site) = k.spaces[k.process.space].pages.site(site);
        Ok(Requested { pages: pages.map(|pages| (pages, false)).or(huge), site: Some(site) })
    }

    fn own_pages(&self) -> Option<MappingPages> {
        self.pages.map(|(pages, _)| pages)
    }

    /// Applies them to a new range.
    fn note(&self, k: &mut Kernel<'_>, range: std::ops::Range<u64>) {
        if let Some((pages, on_demand)) = self.pages {
            k.spaces[k.process.space].pages.give(range.clone(), pages, on_demand);
        }
        if let Some(site) = self.site {
            k.spaces[k.process.space].pages.made_by(range, site);
        }
    }
}

/// Returns the properties of a region that grows to `len` bytes: its present ones, if known.
fn grown(k: &mut Kernel<'_>, region: &Region, len: u64) -> std::result::Result<Requested, Errno> {
    let (pages, site) = k.spaces[k.process.space].pages.requested_at(region.start);
    if pages.is_some() || site.is_some() {
        Ok(Requested { pages, site })
    } else {
        Requested::of(k, region.segment, len, 0)
    }
}

/// Returns the bytes of the pages that flags of `mmap` request, with the size's logarithm in their upper bits or, without it, the
/// system's default.
///
/// # Errors
/// `EINVAL`: the machine has no such pages, or the mapping is of a file, none of which is in a `hugetlbfs`.
fn huge_page(k: &Kernel<'_>, flags: u64) -> std::result::Result<Option<u64>, Errno> {
    const SHIFT: u32 = 26;
    const MASK: u64 = 0x3f;
    if flags & MAP_HUGETLB == 0 {
        return Ok(None);
    }
    if flags & MAP_ANONYMOUS == 0 {
        return Err(Errno::INVAL);
    }
    let sizes = &k.system.platform.huge_page_bytes;
    let bytes = match flags >> SHIFT & MASK {
        0 => sizes.first().copied(),
        shift => Some(1 << shift).filter(|bytes| sizes.contains(bytes)),
    };
    bytes.map(Some).ok_or(Errno::INVAL)
}

/// Maps `region` for a thread, replacing what was there.
fn map_as(k: &mut Kernel<'_>, region: Region, requested: &Requested) -> std::result::Result<(), Errno> {
    replace(k, region)?;
    requested.note(k, region.start..region.end);
    let who = k.toucher();
    k.spaces[k.process.space].pages.mapped(k.mem, &region, who);
    Ok(())
}

/// The same for a region with the default pages of its segment.
fn map(k: &mut Kernel<'_>, region: Region) -> std::result::Result<(), Errno> {
    map_as(k, region, &Requested::default())
}

/// Maps `region` of a shared object, replacing what was there, and records what it is.
pub(super) fn attach(k: &mut Kernel<'_>, region: Region, record: Mapped) -> std::result::Result<(), Errno> {
    map(k, region)?;
    k.spaces[k.process.space].mapped.insert(region.start, record);
    Ok(())
}

/// Maps `region`, replacing what was there, without allocating pages.
fn replace(k: &mut Kernel<'_>, region: Region) -> std::result::Result<(), Errno> {
    let Region { start, end, .. } = region;
    touch_code(k, start, end);
    k.spaces[k.process.space].mapped.remove(start, end);
    k.spaces[k.process.space].pages.unmapped(start..end);
    k.mem.map_region(region).map_err(|_| Errno::NOMEM)
}

pub(super) fn unmap(k: &mut Kernel<'_>, start: u64, end: u64) -> std::result::Result<(), Errno> {
    touch_code(k, start, end);
    k.spaces[k.process.space].mapped.remove(start, end);
    k.spaces[k.process.space].pages.unmapped(start..end);
    k.mem.unmap(start, end - start).map_err(|_| Errno::INVAL)
}

pub(super) fn brk(k: &mut Kernel<'_>, a: &Args) -> Result {
    let wanted = a[0];
    let (old_end, new_end) =
        (k.spaces[k.process.space].brk.next_multiple_of(PAGE), wanted.checked_next_multiple_of(PAGE));
    let possible = new_end.filter(|&end| wanted >= k.spaces[k.process.space].heap_start && end <= MMAP_TOP);
    let Some(new_end) = possible else { return Ok(k.spaces[k.process.space].brk) };
    if new_end > old_end {
        let too_much = new_end - k.spaces[k.process.space].heap_start > k.system.platform.memory_bytes;
        let (prot, segment) = (Prot::RW, Segment::Heap);
        let more = Region { start: old_end, end: new_end, prot, segment, shared: false, backing: None };
        if too_much || in_use(k.mem, old_end, new_end) || map(k, more).is_err() {
            return Ok(k.spaces[k.process.space].brk);
        }
    } else if new_end < old_end {
        unmap(k, new_end, old_end).map_err(|_| Errno::NOMEM)?;
    }
    k.spaces[k.process.space].brk = wanted;
    Ok(wanted)
}

pub(super) fn mmap(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (hint, len, bits, flags, fd, offset) = (a[0], a[1], a[2], a[3], a[4] as i32, a[5]);
    let anonymous = flags & MAP_ANONYMOUS != 0;
    if !anonymous && k.process.files.object(fd).is_some_and(|object| object.event().is_some()) {
        return perf::mmap(k, a);
    }
    k.check_regions()?;
    if len == 0 || !matches!(flags & MAP_TYPE, 1..=3) || (!anonymous && offset % PAGE != 0) {
        return Err(Errno::INVAL);
    }
    let whole = huge_page(k, flags)?.unwrap_or(PAGE).max(PAGE);
    let len = len.checked_next_multiple_of(whole).filter(|&l| l <= USER_END).ok_or(Errno::NOMEM)?;
    if flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) != 0 && hint % whole != 0 {
        return Err(Errno::INVAL);
    }
    // Only memory meant to be used must fit in the machine's memory.
    if bits & 2 != 0 && flags & MAP_NORESERVE == 0 && len > k.system.platform.memory_bytes {
        return Err(Errno::NOMEM);
    }
    if !anonymous {
        offset.checked_add(len).filter(|&end| end <= i64::MAX as u64).ok_or(Errno::OVERFLOW)?;
        check_file(k, fd, bits, flags)?;
    }
    let requested = Requested::of(k, purpose(bits, flags), len, flags)?;
    let align = k.spaces[k.process.space].pages.alignment(purpose(bits, flags), requested.own_pages(), len);
    let start = place(k.mem, hint, len, flags, align)?;
    let segment = segment(k.mem, start, bits, flags);
    let shared = flags & MAP_SHARED != 0;
    let backing = if anonymous { anonymous_object(k, shared) } else { file_object(k, fd, [bits, offset], shared)? };
    map_as(k, Region { start, end: start + len, prot: prot(bits), segment, shared, backing }, &requested)?;
    if anonymous {
        backing.into_iter().for_each(|backing| k.mem.release_object(backing.object));
    } else {
        let file = k.process.files.host(fd)?;
        let region = k.mem.region_at(start).copied().filter(|region| region.backing.is_some());
        let filled = match region {
            None => fill(k.mem, file, start, len, offset),
            Some(_) if shared => Ok(()),
            // All at once, as a copy would be.
            Some(region) => k.mem.load_pages(&region).map_err(|_| Errno::NOMEM),
        };
        if let Err(error) = filled {
            unmap(k, start, start + len)?;
            return Err(error);
        }
        note_file(k, fd, start, len, offset, flags)?;
        if segment == Segment::Text {
            note_library(k, fd, start, offset)?;
        }
    }
    k.note_mappings(start, start + len);
    Ok(start)
}

/// Returns a new object for a shared anonymous mapping; its creator releases it when it is mapped.
fn anonymous_object(k: &mut Kernel<'_>, shared: bool) -> Option<Backing> {
    shared.then(|| Backing { object: k.mem.add_object(), page: 0 })
}

/// Returns the part of a file's object that a new mapping maps. Private mappings use the object if there is one: they see changes
/// of the file until they have pages of their own.
fn file_object(
    k: &mut Kernel<'_>,
    fd: i32,
    [bits, offset]: [u64; 2],
    shared: bool,
) -> std::result::Result<Option<Backing>, Errno> {
    let object = if shared { Some(k.shared_object(fd)?) } else { k.private_object(fd, bits & 2 == 0)? };
    Ok(object.map(|object| Backing { object, page: offset / PAGE }))
}

/// Returns the purpose of a new mapping at `start`. The zero pages after a library's data, which its loader maps over the file's
/// pages, are part of it.
fn segment(mem: &Memory, start: u64, bits: u64, flags: u64) -> Segment {
    let before = mem.region_at(start).map(|region| region.segment);
    let part_of_file = flags & MAP_FIXED != 0 && matches!(before, Some(Segment::File | Segment::Text));
    if part_of_file && flags & MAP_ANONYMOUS != 0 { Segment::File } else { purpose(bits, flags) }
}

/// Returns the purpose of a mapping at any address. Libraries are files; their code is text.
fn purpose(bits: u64, flags: u64) -> Segment {
    const EXEC: u64 = 4;
    match () {
        () if flags & MAP_ANONYMOUS == 0 && bits & EXEC != 0 => Segment::Text,
        () if flags & MAP_ANONYMOUS == 0 => Segment::File,
        () if flags & MAP_SHARED != 0 => Segment::Shared,
        () if flags & MAP_STACK != 0 => Segment::ThreadStack,
        () => Segment::Mmap,
    }
}

/// Records the file of a new mapping.
fn note_file(
    k: &mut Kernel<'_>,
    fd: i32,
    start: u64,
    len: u64,
    offset: u64,
    flags: u64,
) -> std::result::Result<(), Errno> {
    let file = k.process.files.host(fd)?;
    let shared = flags & MAP_TYPE & MAP_SHARED != 0;
    let writable = rustix::fs::fcntl_getfl(file)? & OFlags::RWMODE == OFlags::RDWR;
    let inode = rustix::fs::fstat(file)?.st_ino;
    let mapped = Mapped { end: start + len, path: k.process.files.link_text(fd), offset, inode, shared, writable };
    k.spaces[k.process.space].mapped.insert(start, mapped);
    Ok(())
}

/// Adds the names of a library's functions, for reports.
fn note_library(k: &mut Kernel<'_>, fd: i32, start: u64, offset: u64) -> std::result::Result<(), Errno> {
    let file = std::fs::File::from(k.process.files.second(fd)?.host);
    // A file truncated in the meantime has no names.
    let Ok(file) = ProgramFile::of(file, k.system.platform.memory_bytes) else { return Ok(()) };
    if let Some(symbols) = elf::library_symbols(Content::File(&file), start, offset) {
        // The program runs without them.
        if k.afford(symbols.bytes()).is_err() {
            return Ok(());
        }
        Rc::make_mut(&mut k.process.symbols).add(symbols);
        k.process.symbols_charge = Rc::new(k.system.budget.charge(k.process.symbols.bytes()));
    }
    Ok(())
}

/// Returns where a new mapping goes.
pub(super) fn place(mem: &Memory, hint: u64, len: u64, flags: u64, align: u64) -> Result {
    if flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) != 0 {
        let (start, end) = range(hint, len)?;
        if start < PAGE {
            return Err(Errno::PERM);
        }
        if flags & MAP_FIXED_NOREPLACE != 0 && in_use(mem, start, end) {
            return Err(Errno::EXIST);
        }
        return Ok(start);
    }
    let hint = hint.checked_next_multiple_of(PAGE).unwrap_or(0);
    let fits = hint >= PAGE && hint.checked_add(len).is_some_and(|end| end <= MMAP_TOP && !in_use(mem, hint, end));
    if fits { Ok(hint) } else { free_place(mem, len, align).ok_or(Errno::NOMEM) }
}

/// Checks whether a file can be mapped in this way.
fn check_file(k: &Kernel<'_>, fd: i32, bits: u64, flags: u64) -> std::result::Result<(), Errno> {
    let file = k.process.files.host(fd)?;
    let mode = rustix::fs::fcntl_getfl(file)? & OFlags::RWMODE;
    let shared = flags & MAP_TYPE & MAP_SHARED != 0;
    if mode == OFlags::WRONLY || (shared && bits & 2 != 0 && mode != OFlags::RDWR) {
        return Err(Errno::ACCESS);
    }
    if rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(file)?.st_mode).is_file() {
        Ok(())
    } else {
        Err(Errno::NODEV)
    }
}

/// Copies the file's contents into a new mapping. Bytes beyond the end of the file are zero.
fn fill(mem: &mut Memory, file: BorrowedFd<'_>, start: u64, len: u64, offset: u64) -> std::result::Result<(), Errno> {
    let mut buffer = vec![0; len.min(1 << 20) as usize];
    let mut done = 0;
    while done < len {
        let n = (len - done).min(buffer.len() as u64) as usize;
        match rustix::io::pread(file, &mut buffer[..n], offset + done) {
            Ok(0) => break,
            Ok(got) => {
                mem.write_privileged(start + done, &buffer[..got]).map_err(|_| Errno::NOMEM)?;
                done += got as u64;
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub(super) fn munmap(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (start, end) = range(a[0], a[1]).map_err(|_| Errno::INVAL)?;
    if start == end {
        return Err(Errno::INVAL);
    }
    unmap(k, start, end)?;
    Ok(0)
}

pub(super) fn mprotect(k: &mut Kernel<'_>, a: &Args) -> Result {
    const PROT_SEM: u64 = 8;
    k.check_regions()?;
    let (start, end) = range(a[0], a[1])?;
    if a[2] & !(7 | PROT_SEM) != 0 {
        return Err(Errno::INVAL);
    }
    let prot = prot(a[2]);
    // Linux changes one mapping after the other and keeps earlier changes when it refuses one.
    let refused = if prot.write { k.spaces[k.process.space].mapped.first_unwritable(start, end) } else { None };
    let allowed_end = refused.unwrap_or(end);
    if start < allowed_end {
        touch_code(k, start, allowed_end);
        k.mem.protect(start, allowed_end - start, prot).map_err(|_| Errno::NOMEM)?;
        prepage_reserved(k, start, allowed_end);
        if prot.exec {
            k.note_mappings(start, allowed_end);
        }
    }
    if refused.is_some() { Err(Errno::ACCESS) } else { Ok(0) }
}

/// Allocates prepaged pages: C libraries reserve the stack of a thread, and heaps of threads other than the first, and then make
/// them writable.
fn prepage_reserved(k: &mut Kernel<'_>, start: u64, end: u64) {
    let who = k.toucher();
    let reserved = |region: &&Region| matches!(region.segment, Segment::ThreadStack | Segment::Mmap);
    for region in k.mem.regions_within(start, end).filter(reserved) {
        k.spaces[k.process.space].pages.mapped(k.mem, region, who);
    }
}

pub(super) fn mremap(k: &mut Kernel<'_>, a: &Args) -> Result {
    const MAYMOVE: u64 = 1;
    const FIXED: u64 = 2;
    k.check_regions()?;
    let flags = a[3];
    if flags & !(MAYMOVE | FIXED) != 0 || (flags & FIXED != 0 && flags & MAYMOVE == 0) || a[2] == 0 {
        return Err(Errno::INVAL);
    }
    let (start, old_end) = range(a[0], a[1]).map_err(|_| Errno::INVAL)?;
    let (_, new_end) = range(a[0], a[2])?;
    let region = *k.mem.region_at(start).ok_or(Errno::FAULT)?;
    if !mapped(k.mem, start, old_end) {
        return Err(Errno::FAULT);
    }
    // A second mapping of the same pages.
    let duplicates = old_end == start;
    if duplicates && (!region.shared || flags & MAYMOVE == 0) {
        return Err(if region.shared { Errno::NOMEM } else { Errno::INVAL });
    }
    let (old_len, new_len) = (old_end - start, new_end - start);
    if new_len > k.system.platform.memory_bytes {
        return Err(Errno::NOMEM);
    }
    touch_code(k, start, old_end);
    let requested = if new_len > old_len { grown(k, &region, new_len)? } else { Requested::default() };
    if flags & FIXED == 0 && !duplicates {
        if new_len <= old_len {
            if new_len < old_len {
                unmap(k, new_end, old_end)?;
            }
            return Ok(start);
        }
        if new_end <= MMAP_TOP && !in_use(k.mem, old_end, new_end) {
            continue_mapping(k, &region, start + old_len, old_end..new_end, &requested)?;
            return Ok(start);
        }
        if flags & MAYMOVE == 0 {
            return Err(Errno::NOMEM);
        }
    }
    let to = if flags & FIXED != 0 {
        let (to, to_end) = range(a[4], new_len).map_err(|_| Errno::INVAL)?;
        if to < PAGE || (to < old_end && start < to_end) {
            return Err(Errno::INVAL);
        }
        to
    } else {
        free_place(
            k.mem,
            new_len,
            k.spaces[k.process.space].pages.alignment(region.segment, requested.own_pages(), new_len),
        )
        .ok_or(Errno::NOMEM)?
    };
    let kept = old_len.min(new_len);
    if kept > 0 {
        move_mapping(k, start, kept, to)?;
    }
    if new_len > kept {
        continue_mapping(k, &region, start + kept, to + kept..to + new_len, &requested)?;
    }
    if kept < old_len {
        unmap(k, start + kept, old_end)?;
    }
    Ok(to)
}

/// Moves `[start, start + len)` to `to`, replacing what was there. On an error, nothing has changed.
fn move_mapping(k: &mut Kernel<'_>, start: u64, len: u64, to: u64) -> std::result::Result<(), Errno> {
    touch_code(k, to, to + len);
    k.mem.move_range(start, len, to).map_err(|_| Errno::NOMEM)?;
    let who = k.toucher();
    let space = &mut k.spaces[k.process.space];
    space.mapped.remove(to, to + len);
    space.pages.unmapped(to..to + len);
    space.mapped.move_range(start, len, to);
    space.pages.moved(start, len, to);
    space.pages.unmapped(start..start + len);
    for region in k.mem.regions_within(to, to + len) {
        space.pages.mapped(k.mem, region, who);
    }
    Ok(())
}

/// Maps `range` as the continuation at `from` of a mapping, of which `region` is the first part.
fn continue_mapping(
    k: &mut Kernel<'_>,
    region: &Region,
    from: u64,
    range: std::ops::Range<u64>,
    requested: &Requested,
) -> std::result::Result<(), Errno> {
    let record = k.space().mapped.at(region.start).filter(|_| region.backing.is_some());
    map_as(k, region.continued(from - region.start, range.start, range.end), requested)?;
    if let Some(record) = record {
        let offset = record.offset + (from - region.start);
        k.spaces[k.process.space].mapped.insert(range.start, Mapped { end: range.end, offset, ..record });
    }
    Ok(())
}

pub(super) fn madvise(k: &mut Kernel<'_>, a: &Args) -> Result {
    const DONTNEED: u64 = 4;
    const HUGEPAGE: u64 = 14;
    const NOHUGEPAGE: u64 = 15;
    const COLLAPSE: u64 = 25;
    let (start, end) = range(a[0], a[1]).map_err(|_| Errno::INVAL)?;
    match a[2] {
        0..=4 | 8..=23 | COLLAPSE => {}
        _ => return Err(Errno::INVAL),
    }
    if !mapped(k.mem, start, end) {
        return Err(Errno::NOMEM);
    }
    if a[2] == DONTNEED {
        let anonymous = |s| !matches!(s, Segment::Text | Segment::Data | Segment::File | Segment::Shared);
        let regions: Vec<_> = k.mem.regions_within(start, end).copied().collect();
        for region in regions.iter().filter(|r| (anonymous(r.segment) || r.backing.is_some()) && !r.shared) {
            let (start, end) = (region.start.max(start), region.end.min(end));
            k.mem.discard(start, end);
            k.spaces[k.process.space].pages.discarded(start..end);
        }
    }
    match a[2] {
        HUGEPAGE => k.spaces[k.process.space].pages.advise_huge(k.mem, start..end)?,
        NOHUGEPAGE => k.spaces[k.process.space].pages.advise_no_huge(k.mem, start..end)?,
        COLLAPSE => k.spaces[k.process.space].pages.collapse_now(k.mem, start..end)?,
        _ => {}
    }
    Ok(0)
}

/// `msync`: writes changes of shared mappings to their files, even if parts of the range are not mapped. Files in the simulated
/// memory have nothing behind them.
pub(super) fn msync(k: &mut Kernel<'_>, a: &Args) -> Result {
    const ASYNC: u64 = 1;
    const INVALIDATE: u64 = 2;
    const SYNC: u64 = 4;
    if a[2] & !(ASYNC | INVALIDATE | SYNC) != 0 || a[2] & (ASYNC | SYNC) == ASYNC | SYNC {
        return Err(Errno::INVAL);
    }
    let (start, end) = range(a[0], a[1])?;
    k.flush_range(start, end)?;
    if mapped(k.mem, start, end) { Ok(0) } else { Err(Errno::NOMEM) }
}

/// `mlock` and related calls: memory is always resident.
pub(super) fn mlock(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (start, end) = range(a[0] & !(PAGE - 1), a[1].saturating_add(a[0] % PAGE))?;
    if mapped(k.mem, start, end) { Ok(0) } else { Err(Errno::NOMEM) }
}

/// `mlockall` and `munlockall`.
pub(super) fn mlockall(_: &mut Kernel<'_>, _: &Args) -> Result {
    Ok(0)
}

/// `mincore`: every mapped page is resident.
pub(super) fn mincore(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (start, end) = range(a[0], a[1])?;
    if !mapped(k.mem, start, end) {
        return Err(Errno::NOMEM);
    }
    for page in 0..(end - start) / PAGE {
        user::write(k.mem, a[2].wrapping_add(page), 1u8)?;
    }
    Ok(0)
}

/// `personality`: only the default one. Addresses are never randomised.
pub(super) fn personality(_: &mut Kernel<'_>, _: &Args) -> Result {
    Ok(0)
}
